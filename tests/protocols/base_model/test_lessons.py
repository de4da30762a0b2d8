"""A lesson's branch is exactly the prompt of a test, and what it may see is exactly that prompt."""

from random import Random

import pytest
import torch
from transformers import AutoTokenizer

from hippo_core.files import root
from hippo_core.models.prompt import INSTRUCTION
from hippo_core.protocols.base_model import guidance, lessons, train
from hippo_core.protocols.base_model.lessons import IGNORE, Branch, Lesson

RECIPE = train.Recipe(width=32, mlp=48, heads=2, lessons=3, stories=1, steps=6, warmup=2, threads=1)


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(root() / "data/weights/hippo-tiny")


@pytest.fixture(scope="module")
def encoder(tokenizer):
    return lessons.Encoder(tokenizer)


LESSON = Lesson(
    facts=(
        ("On Friday, Carla sold a guitar at the market.", ("Carla", "sold", "guitar", "market", "Friday")),
        ("Zendaya, in May, bought a hat.", ()),
    ),
    branches=(
        Branch("Who sold a guitar?", "Carla", (0,)),
        Branch("When did Carla sell a guitar?", "Friday", (0,)),
        Branch("", "Carla sold.", (0,)),
    ),
)


def prompt_of(tokenizer, branch: Branch) -> str:
    turns = [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": "\n".join([*(text for text, _ in LESSON.facts), branch.question])},
    ]
    return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)


def branch_tokens(batch, number: int, branch: int, lesson: Lesson, encoder) -> list[int]:
    """The tokens that the last token of a branch sees, in order."""
    row = encoder._row(lesson)
    last = max(place for place, owner in enumerate(row["branch"]) if owner == branch)
    return [token for token, seen in zip(batch.ids[number].tolist(), batch.mask[number, last].tolist(), strict=True) if seen]


@pytest.mark.parametrize("number", [0, 1])
def test_a_branch_sees_the_prompt_of_a_test_and_its_answer(tokenizer, encoder, number):
    [batch] = encoder.batches([LESSON], [], 1)
    branch = LESSON.branches[number]
    text = f"{prompt_of(tokenizer, branch)}{branch.answer}<|end|>"
    assert branch_tokens(batch, 0, number + 1, LESSON, encoder) == tokenizer(text, add_special_tokens=False).input_ids


def test_packed_branches_give_the_logits_of_single_prompts(tokenizer, encoder):
    model = train.new_model(RECIPE, tokenizer).eval()
    [batch] = encoder.batches([LESSON], [], 1)
    row = encoder._row(LESSON)
    with torch.no_grad():
        packed = model(batch.ids, position_ids=batch.positions, attention_mask=batch.mask[:, None]).logits[0]
        for number, branch in enumerate(LESSON.branches[:2], 1):
            ids = tokenizer(
                f"{prompt_of(tokenizer, branch)}{branch.answer}<|end|>", add_special_tokens=False, return_tensors="pt"
            ).input_ids
            causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()[None, None]
            alone = model(ids, attention_mask=causal).logits[0]
            places = [place for place, owner in enumerate(row["branch"]) if owner == number]
            torch.testing.assert_close(packed[places], alone[-len(places) :], atol=1e-5, rtol=1e-4)


def test_labels_are_the_answer_and_the_end_of_the_turn(tokenizer, encoder):
    row = encoder._row(LESSON)
    labelled = [label for label, owner in zip(row["labels"], row["branch"], strict=True) if owner == 2 and label != IGNORE]
    assert tokenizer.decode(labelled).strip() == "Friday<|end|>"


def test_copy_guidance_points_at_the_token_to_be_copied(encoder):
    row = encoder._row(LESSON)
    aims = [(query, keys) for kind, query, keys in row["targets"] if kind == "copy"]
    assert aims
    for query, (key,) in aims:
        assert row["ids"][key] == row["labels"][query]


def test_a_trimmed_lesson_keeps_the_gold_facts(encoder):
    random = Random(0)
    for step in range(40):
        lesson = lessons.make_lesson(random, step / 40)
        trimmed = lessons.trim(random, lesson, 3)
        assert trimmed.branches
        for branch in trimmed.branches:
            matching = [old for old in lesson.branches if (old.question, old.answer) == (branch.question, branch.answer)]
            texts = [trimmed.facts[index] for index in branch.gold]
            assert any(texts == [lesson.facts[index] for index in old.gold] for old in matching)


def test_guidance_is_lowest_where_the_heads_look_at_their_targets():
    query, key = torch.zeros(1, 1, 3, 2), torch.tensor([[[[0.0, 0.0], [9.0, 0.0], [0.0, 0.0]]]])
    query[0, 0, 2] = torch.tensor([5.0, 0.0])
    kept = guidance.Attention({head.layer: (query.expand(1, 2, 3, 2), key.expand(1, 2, 3, 2), 1.0) for head in guidance.HEADS})
    mask = torch.ones(1, 3, 3, dtype=torch.bool).tril()
    hit = kept.loss([guidance.Target("copy", 0, 2, (1,))], mask)
    miss = kept.loss([guidance.Target("copy", 0, 2, (0,))], mask)
    assert hit < 1e-6 < 10 < miss


def test_batches_follow_from_seed_and_step_alone(tokenizer):
    def third(first):
        for step, parts in enumerate(train.batches(RECIPE, tokenizer, first), first):
            if step == 3:
                return torch.cat([part.ids.flatten() for part in parts])

    assert torch.equal(third(0), third(3))


def test_a_killed_training_goes_on_to_the_same_weights(tokenizer, tmp_path):
    whole = train.train(RECIPE, tokenizer, tmp_path / "whole", say=lambda _: None, every=2)

    def stop_at_four(line):
        if line.startswith("step 5/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train.train(RECIPE, tokenizer, tmp_path / "cut", say=stop_at_four, every=2)
    resumed = train.train(RECIPE, tokenizer, tmp_path / "cut", say=lambda _: None, every=2)
    for (name, one), (_, other) in zip(whole.named_parameters(), resumed.named_parameters(), strict=True):
        assert torch.equal(one, other), name


def test_a_checkpoint_of_another_recipe_is_refused(tokenizer, tmp_path):
    train.train(RECIPE, tokenizer, tmp_path, say=lambda _: None, every=2)
    with pytest.raises(Exception, match="another recipe"):
        train.train(RECIPE.model_copy(update={"seed": 1}), tokenizer, tmp_path, say=lambda _: None)

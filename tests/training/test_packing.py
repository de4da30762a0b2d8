"""A lesson's branch is exactly the prompt of a test, as text and as blocks, and what it may see is exactly that prompt."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoTokenizer

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.models.prompt import INSTRUCTION
from hippo_core.models.template import template_for
from hippo_core.training.lessons import Branch, Lesson
from hippo_core.training.packed_examples import IGNORE, LessonEncoder
from hippo_core.training.train import right_answers
from recipes import guidance, tiny

RECIPE = tiny.Recipe(width=32, mlp=48, heads=2, lessons=3, stories=1, steps=6, warmup=2, threads=1)
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


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(root() / "data/weights/hippo-tiny", trust_remote_code=False)


@pytest.fixture(scope="module")
def encoder(tokenizer):
    return LessonEncoder(tokenizer, template_for(tokenizer, "model"), guided=True, restate=True)


def prompt_of(tokenizer, branch: Branch, plain: bool = False) -> str:
    lines = [text for text, _ in LESSON.facts]
    if plain:
        return template_for(tokenizer, "model").begin + "\n".join([*lines, f"Question: {branch.question}", "Answer:"])
    turns = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": "\n".join([*lines, branch.question])}]
    return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)


def seen_by(batch, encoder, lesson: Lesson, branch: int) -> list[int]:
    """The places that the last token of a branch sees, in order."""
    part = encoder.row(lesson).part
    last = max(position for position, owner in enumerate(part) if owner == branch)
    return [position for position, seen in enumerate(batch.mask[0, last].tolist()) if seen]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("lesson", [LESSON, replace(LESSON, blocks=True), replace(LESSON, plain=True)], ids=["text", "blocks", "plain"])
def test_a_branch_sees_the_prompt_of_a_test_and_its_answer(tokenizer, encoder, lesson, number):
    [batch] = encoder.batches([lesson], [], 1)
    branch = lesson.branches[number]
    text = f"{prompt_of(tokenizer, branch, lesson.plain)} {branch.answer}"
    ids = batch.ids[0, seen_by(batch, encoder, lesson, number + 1)].tolist()
    expected = tokenizer(text if lesson.plain else text.replace("> ", ">"), add_special_tokens=False).input_ids
    assert ids == [*expected, encoder.newline if lesson.plain else encoder.stop]


def test_packed_branches_give_the_logits_of_single_prompts(tokenizer, encoder):
    model = tiny.new_model(RECIPE, tokenizer).eval()
    [batch] = encoder.batches([LESSON], [], 1)
    part = encoder.row(LESSON).part
    with torch.no_grad():
        packed = model(batch.ids, position_ids=batch.positions, attention_mask=batch.mask[:, None]).logits[0]
        for number, branch in enumerate(LESSON.branches[:2], 1):
            text = f"{prompt_of(tokenizer, branch)}{branch.answer}<|end|>"
            ids = tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
            causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()[None, None]
            alone = model(ids, attention_mask=causal).logits[0]
            positions = [position for position, owner in enumerate(part) if owner == number]
            torch.testing.assert_close(packed[positions], alone[-len(positions) :], atol=1e-5, rtol=1e-4)


def test_a_block_sees_the_beginning_and_itself_and_all_blocks_start_together(encoder):
    lesson = replace(LESSON, blocks=True)
    [batch] = encoder.batches([lesson], [], 1)
    row = encoder.row(lesson)
    start = len(encoder.head)
    longest = max(sum(part == block for part in row.part) for block in (-1, -2))
    for block in (-1, -2):
        positions = [position for position, part in enumerate(row.part) if part == block]
        assert [row.positions[position] for position in positions] == list(range(start, start + len(positions)))
        assert batch.mask[0, positions[-1]].nonzero().flatten().tolist() == [*range(start), *positions]
    assert row.positions[row.part.index(1)] == start + longest


def test_the_answers_that_are_judged_are_the_labels(tokenizer, encoder):
    [batch] = encoder.batches([LESSON], [], 1)
    assert [tokenizer.decode(batch.labels[row, positions]).strip() for row, positions, _ in batch.skills] == [
        "Carla<|end|>",
        "Friday<|end|>",
    ]
    assert len(right_answers(tiny.new_model(RECIPE, tokenizer).eval(), batch)) == 2


def test_copy_guidance_points_at_the_token_to_be_copied(encoder):
    for lesson in (LESSON, replace(LESSON, blocks=True)):
        row = encoder.row(lesson)
        aims = [(query, keys) for kind, query, keys in row.targets if kind == "copy"]
        assert aims
        for query, (key,) in aims:
            assert row.ids[key] == row.labels[query]


def test_guidance_starts_at_the_token_that_answers_and_ends_in_the_facts_that_it_needs(encoder):
    lesson = replace(LESSON, branches=(Branch("What did the seller of the guitar buy?", "hat", (0, 1)),), blocks=True)
    row = encoder.row(lesson)
    positions = {
        fact: [position for position, part in enumerate(row.part) if part == -1 - fact][:-1] for fact in (0, 1)
    }  # without the newline
    aims = {kind: (query, keys) for kind, query, keys in row.targets if kind in ("hop", "locate", "fact")}
    answers = next(position for position, label in enumerate(row.labels) if label != IGNORE)
    assert {query for query, _ in aims.values()} == {answers}
    assert aims["fact"][1] == tuple(positions[1])
    assert set(aims["hop"][1]) < set(positions[0])  # its end; the other fact has no slots, so it has no end to look at
    assert "locate" not in aims


def test_guidance_is_lowest_where_the_heads_look_at_their_targets():
    query, key = torch.zeros(1, 1, 3, 2), torch.tensor([[[[0.0, 0.0], [9.0, 0.0], [0.0, 0.0]]]])
    query[0, 0, 2] = torch.tensor([5.0, 0.0])
    kept = guidance.Attention(tiny.HEADS, {head.layer: (query.expand(1, 2, 3, 2), key.expand(1, 2, 3, 2), 1.0) for head in tiny.HEADS})
    mask = torch.ones(1, 3, 3, dtype=torch.bool).tril()
    hit = kept.loss([guidance.Target("copy", 0, 2, (1,))], mask)
    miss = kept.loss([guidance.Target("copy", 0, 2, (0,))], mask)
    assert hit < 1e-6 < 10 < miss
    mask[0, 2, 1] = False  # what nobody may see takes no attention away
    assert kept.loss([guidance.Target("copy", 0, 2, (0,))], mask) < 1.0


@pytest.mark.parametrize("length", [9, guidance.SHORT + 1])
def test_guided_attention_is_causal_attention_where_no_mask_is_given(length):
    query, key, value = torch.randn(3, 2, 4, length, 8, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    attended = [guidance.attend(None, query, key[:, :2], value[:, :2], seen, 0.3)[0] for seen in (None, mask)]
    shared = (key[:, :2].repeat_interleave(2, 1), value[:, :2].repeat_interleave(2, 1))
    wanted = torch.nn.functional.scaled_dot_product_attention(query, *shared, is_causal=True, scale=0.3).transpose(1, 2)
    assert all(torch.allclose(attention, wanted, atol=1e-5) for attention in attended)


def test_a_template_that_ends_an_answer_by_no_token_of_its_own_is_refused(tokenizer):
    with pytest.raises(LabError, match="generic chat template ends an answer by no special token"):
        LessonEncoder(tokenizer, template_for(tokenizer, "generic"))

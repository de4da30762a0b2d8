"""Every way into a model: without effect until it is trained, put aside bit for bit, read back as it was saved."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from hippo_core.discovery import members
from hippo_core.errors import LabError
from hippo_core.evaluation.run import answer
from hippo_core.methods.presets import load_preset
from hippo_core.models.generate import generate
from hippo_core.models.load import load
from hippo_core.models.prompt import render
from hippo_core.models.score import early_states
from hippo_core.models.spec import load_spec
from hippo_core.store.trace import Trace
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.training.consolidation.update_rules import gated, make_update_rule
from hippo_core.training.consolidation.update_rules.base import FILE
from hippo_core.training.consolidation.update_rules.lora import LoRAUpdate
from tests.training.consolidation.conftest import TEXTS

RANK = 2
QUESTIONS = ["Who sold a guitar at the market on Friday?", "Where did Anders lose a bicycle?", "When did Wiebke walk to the harbor?"]
SECOND = ("At dawn, Zora bought a kite at the castle.",)
UPDATE_RULES = tuple(members("hippo_core.training.consolidation.update_rules"))
EVERY = pytest.mark.parametrize("name", UPDATE_RULES)


@pytest.fixture(autouse=True)
def few_strangers(monkeypatch):
    monkeypatch.setattr(gated, "LESSONS", 10)


@pytest.fixture
def attached(lm):
    """Attaches ways to the model, which is left as it was found."""
    made = []

    def attach(name, rank=RANK, first_block=0):
        made.append(make_update_rule(name, lm, rank, first_block))
        return made[-1]

    yield attach
    for update_rule in made:
        update_rule.detach()


@pytest.fixture
def trained(attached, lm, sleep):
    """A way that has learnt for three steps; with so high a rate that nothing stays as it was."""

    def train(name, first_block=0):
        update_rule = attached(name, first_block=first_block)
        trainee = sleep(lm, update_rule, rate=0.1)
        for step in range(3):
            trainee.learn(step)
        return update_rule

    return train


@torch.inference_mode()
def logits(lm, text="Carla sold a guitar at the market, and"):
    return lm.model(torch.tensor([lm.encode(text)])).logits


def weights_of(lm):
    return {name: weight.detach().clone() for name, weight in lm.model.state_dict().items()}


@EVERY
def test_before_training_nothing_changes(name, attached, lm):
    before = logits(lm)
    assert attached(name).number() > 0 and torch.equal(logits(lm), before)


@EVERY
def test_what_is_trained_acts_until_it_is_put_aside(name, trained, lm):
    before, weights = logits(lm), weights_of(lm)
    update_rule = trained(name)
    after = logits(lm)
    assert not torch.equal(after, before)
    with update_rule.unchanged():
        assert torch.equal(logits(lm), before)
        with update_rule.unchanged():
            pass
        assert torch.equal(logits(lm), before)
    assert torch.equal(logits(lm), after)
    update_rule.detach()
    assert torch.equal(logits(lm), before)
    current = weights_of(lm)
    assert current.keys() == weights.keys() and all(torch.equal(weight, weights[key]) for key, weight in current.items())


@EVERY
def test_a_loaded_way_answers_like_the_saved_one(name, trained, lm, tmp_path):
    update_rule = trained(name)
    update_rule.save(tmp_path)
    other = load(load_spec("hippo-tiny"), "cpu")
    fresh = make_update_rule(name, other, RANK, 0)
    fresh.load(tmp_path)
    assert torch.equal(logits(other), logits(lm))
    assert fresh.fits(QUESTIONS) == update_rule.fits(QUESTIONS)


@EVERY
def test_the_same_training_gives_the_same_numbers(name, attached, lm, sleep):
    kept = []
    for _ in range(2):
        update_rule = attached(name)
        trainee = sleep(lm, update_rule)
        trainee.learn(0)
        kept.append(update_rule.kept())
        update_rule.detach()
        torch.rand(1)
    assert all(torch.equal(weight, kept[1][key]) for key, weight in kept[0].items())


@EVERY
def test_a_file_that_does_not_fit_is_refused(name, attached, tmp_path):
    update_rule = attached(name)
    update_rule.save(tmp_path)
    before, content = update_rule.kept(), (tmp_path / FILE).read_bytes()
    tensors = {key: tensor.clone() for key, tensor in load_file(tmp_path / FILE).items()}
    first = next(iter(tensors))

    def refused(match):
        with pytest.raises(LabError, match=match):
            update_rule.load(tmp_path)
        assert all(torch.equal(weight, before[key]) for key, weight in update_rule.kept().items())

    (tmp_path / FILE).write_bytes(content[:-8])
    refused("cannot be read")
    (tmp_path / FILE).write_bytes(b"")
    refused("cannot be read")
    (tmp_path / FILE).unlink()
    refused("consolidate again")
    save_file({key: tensor[:1].clone() for key, tensor in tensors.items()}, tmp_path / FILE)
    refused("expected")
    save_file({key: tensor for key, tensor in tensors.items() if key != first}, tmp_path / FILE)
    refused("another model or rank")
    for wrong in (torch.nan, torch.inf):
        save_file({**tensors, first: torch.full_like(tensors[first], wrong)}, tmp_path / FILE)
        refused("finite numbers|units of block")


@EVERY
def test_blocks_below_the_first_one_stay_as_they_are(name, trained, lm):
    first = 2
    before = early_states(lm, TEXTS, [0, 1, first]), early_states(lm, TEXTS, [first + 1])
    trained(name, first)
    after = early_states(lm, TEXTS, [0, 1, first]), early_states(lm, TEXTS, [first + 1])
    assert all(map(torch.equal, before[0], after[0]))
    assert not any(map(torch.equal, before[1], after[1]))


@pytest.mark.parametrize("name", [name for name in UPDATE_RULES if name != "gated_groups"])  # whose layers are another's
def test_an_answer_is_the_same_alone_in_a_batch_and_behind_a_shared_beginning(name, trained, lm):
    update_rule = trained(name)
    drawn = list(worlds("consolidation", "default", 4, 1337, "val"))
    for preset in ("baselines/span_short", "baselines/longctx"):
        chosen = load_preset(preset)
        method = chosen.method(lm, chosen.settings)
        batched = answer(lm, get_suite("consolidation"), drawn, method)
        alone = answer(lm, get_suite("consolidation"), drawn, method, batch_size=1)
        assert list(batched.pred) == list(alone.pred)
        assert batched.first_logprob.to_numpy() == pytest.approx(alone.first_logprob.to_numpy(), abs=1e-3)
    prompts = [render(lm, TEXTS * 4, question, "short") for question in QUESTIONS]
    shared, alone = generate(lm, prompts, 6), [generate(lm, [prompt], 6)[0] for prompt in prompts]
    assert shared[0].computed_tokens < alone[0].computed_tokens
    assert [answer.text for answer in shared] == [answer.text for answer in alone]
    with update_rule.unchanged():
        base = generate(lm, prompts, 6)
    assert [answer.first_logprob for answer in base] != [answer.first_logprob for answer in shared]


def test_the_units_of_sparse_rows_are_those_that_fire_for_the_texts(attached, lm):
    update_rule = attached("sparse")
    update_rule.prepare(TEXTS)
    chosen = update_rule.kept()["0.units"]
    update_rule.prepare(["\u00e9t\u00e9 123 456 !!!"])
    assert len(set(chosen.tolist())) == 4 * RANK
    assert not torch.equal(chosen, update_rule.kept()["0.units"])


def test_a_gate_lets_rehearsed_facts_through_and_no_strangers(attached, lm, sleep):
    update_rule = attached("gated_lora")
    assert update_rule.fits(QUESTIONS) == [False] * 3
    sleep(lm, update_rule, wordings=20)
    assert update_rule.fits(QUESTIONS) == [True] * 3
    others = ["Who painted a chair at the castle in June?", "Where did Zendaya go at dawn?", "What is the capital of Peru?", ""]
    assert update_rule.fits(others) == [False] * 4


def test_what_does_not_fit_is_asked_of_the_unchanged_model(trained, lm):
    update_rule = trained("gated_lora")
    update_rule.fits = lambda questions: [question == "b" for question in questions]
    on, seen = logits(lm), []

    def ask(indices):
        seen.append((indices, torch.equal(logits(lm), on)))
        return [f"{index}" for index in indices]

    assert update_rule.apart(["a", "b", "c"], ask) == ["0", "1", "2"]
    assert seen == [([1], True), ([0, 2], False)]
    assert update_rule.apart([], ask) == []


@EVERY
def test_a_second_sleep_begins_with_what_the_first_one_learnt(name, trained, lm, sleep):
    update_rule = trained(name)
    before, trained_tensors = logits(lm), update_rule.kept()
    sleep(lm, update_rule, SECOND, earlier=[Trace("w", "f", text) for text in TEXTS])
    assert all(torch.equal(weight, update_rule.kept()[key]) for key, weight in trained_tensors.items())
    if name != "gated_groups":
        assert torch.equal(logits(lm), before)


def test_each_sleep_has_an_update_of_its_own_and_a_question_goes_to_the_nearest(trained, lm, sleep, tmp_path):
    questions = [QUESTIONS[0], "Who bought a kite at the castle at dawn?", "What is the capital of Peru?"]

    def asked(update_rule):
        return update_rule.apart(questions, lambda rows: [logits(lm) for _ in rows])

    plain = logits(lm)
    update_rule = trained("gated_groups")
    first = logits(lm)
    learning = sleep(lm, update_rule, SECOND, earlier=[Trace("w", f"f{n}", text) for n, text in enumerate(TEXTS)], rate=0.1, wordings=20)
    assert torch.equal(logits(lm), plain)
    learning.learn(0)
    answers = asked(update_rule)
    assert all(map(torch.equal, answers, (first, logits(lm), plain)))
    assert not torch.equal(answers[0], answers[1])
    update_rule.save(tmp_path)
    update_rule.detach()
    again = make_update_rule("gated_groups", lm, RANK, 0)
    again.load(tmp_path)
    assert all(map(torch.equal, asked(again), answers))
    (tmp_path / gated.GROUPS).write_text('{"groups": [0], "updates": 2}')
    with pytest.raises(LabError, match="does not fit"):
        again.load(tmp_path)
    again.detach()


@pytest.mark.parametrize("broken", ["", "[]", '{"traces": []}', '{"traces": [["a"]], "idf": {"a": "x"}, "unseen": 1, "threshold": 1}'])
def test_a_broken_gate_is_refused(attached, tmp_path, broken):
    update_rule = attached("gated_lora")
    update_rule.save(tmp_path)
    assert json.loads((tmp_path / gated.GATE).read_text())["threshold"] == update_rule.gate.threshold
    (tmp_path / gated.GATE).write_text(broken)
    with pytest.raises(LabError, match=r"gate\.json"):
        update_rule.load(tmp_path)
    (tmp_path / gated.GATE).unlink()
    with pytest.raises(LabError, match="consolidate again"):
        update_rule.load(tmp_path)


@EVERY
def test_numbers_out_of_range_are_refused_and_nothing_is_attached(name, lm):
    before, weights, blocks = logits(lm), weights_of(lm), lm.config.num_hidden_layers
    wrong = [(0, 0, "rank is 1 or more, got 0"), (100_000, 0, r"rank is \d+, .* or less, got 100000")]
    for rank, block, message in [*wrong, *((RANK, block, f"0 to {blocks - 1}, got {block}") for block in (-1, blocks))]:
        with pytest.raises(LabError, match=message):
            make_update_rule(name, lm, rank, block)
    assert torch.equal(logits(lm), before) and weights_of(lm).keys() == weights.keys()


def test_a_layer_that_the_model_lacks_is_named(lm):
    weights = weights_of(lm)
    with pytest.raises(LabError, match="hippo-tiny has no layers called c_fc, which way=lora changes"):
        LoRAUpdate(lm, RANK, 0, ("up_proj", "c_fc"))
    assert weights_of(lm).keys() == weights.keys()

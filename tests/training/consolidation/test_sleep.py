"""A sleep rehearses traces in the order that it is told, and says so where it cannot."""

import math

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation import retention as kept
from hippo_core.training.consolidation import sleep as sleeping
from hippo_core.training.consolidation.update_rules import make_update_rule
from hippo_core.training.packed_examples import IGNORE
from hippo_core.training.train import answer_loss, resume, train
from tests.training.consolidation.conftest import TEXTS

EARLIER = ("At dawn, Zora bought a kite at the castle.", "Bruno found a ladder at the mill in May.")


@pytest.fixture
def update_rule(lm):
    made = make_update_rule("sparse", lm, 2, 0)
    yield made
    made.detach()


@pytest.mark.parametrize("texts", [(), ("and so on.", "nothing is named here.")])
def test_traces_that_say_nothing_are_refused(lm, update_rule, sleep, texts):
    with pytest.raises(LabError, match=f"none of {len(texts)} traces says anything"):
        sleep(lm, update_rule, texts)


def test_a_trace_that_says_nothing_is_passed_over(lm, update_rule, sleep):
    trainee = sleep(lm, update_rule, (TEXTS[0], "and so on.", TEXTS[1]))
    assert {question.trace for step in range(3) for question in trainee.drawn(step)} == {1, 3}


@pytest.mark.parametrize("wrong", [math.inf, math.nan])
def test_a_loss_that_is_no_number_names_its_step(lm, update_rule, sleep, wrong):
    trainee = sleep(lm, update_rule)
    trainee.learn(0)
    with torch.no_grad():
        next(iter(update_rule.weights().values())).fill_(wrong)
    with pytest.raises(LabError, match=r"loss of step 1 is nan: lower the rate \(0.01\)"):
        trainee.learn(1)


def falls_apart(step, gradient):
    """An answers' loss that is no number in a step, or whose gradient is none."""
    losses = iter(range(step + 1))

    def loss(model, batch):
        [weight, *_] = [weight for weight in model.parameters() if weight.requires_grad]
        good = next(losses) < step
        wrong = (0 * weight).sum().sqrt() if gradient else weight.sum() * math.nan
        return (weight**2).sum() if good else wrong, torch.tensor(1.0)

    return loss


@pytest.mark.parametrize("gradient", [False, True])
def test_a_training_that_diverges_stops_at_its_last_good_state_and_keeps_it(lm, sleep, monkeypatch, tmp_path, gradient):
    update_rule = make_update_rule("lora", lm, 2, 0)
    trainee = sleep(lm, update_rule, lessons=0, texts=0)
    monkeypatch.setattr(sleeping, "answer_loss", falls_apart(2, gradient))
    with pytest.raises(LabError, match=r"the (loss|gradient) of step 2 is nan: lower the rate \(0.01\); .* kept in .*checkpoint"):
        train(trainee, tmp_path, lambda _: None, every=50)
    good = update_rule.kept()
    assert all(weight.isfinite().all() for weight in good.values())
    update_rule.set_tensors({name: weight + 1 for name, weight in good.items()})
    assert resume(trainee, tmp_path)[0] == 2
    assert all(torch.equal(weight, good[name]) for name, weight in update_rule.kept().items())
    update_rule.detach()


def test_text_is_held_against_what_the_unchanged_model_makes_of_it(lm, update_rule, sleep):
    trainee = sleep(lm, update_rule, texts=4)
    with torch.no_grad():
        for weight in update_rule.weights().values():
            weight += 0.1
        with update_rule.unchanged():
            before = lm.model(trainee.texts).logits.log_softmax(-1)
        now = lm.model(trainee.texts).logits.log_softmax(-1)
        lost = kept.text_divergence(update_rule, trainee.texts, trainee.text_states)
    assert lost.item() == pytest.approx((before.exp() * (before - now)).sum(-1).mean().item(), rel=1e-5)
    assert lost > 1e-3


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_what_is_distilled_has_its_share_of_the_loss(lm, update_rule, sleep, share):
    trainee = sleep(lm, update_rule, distilled=share, lessons=0, texts=0)
    batch, informed = trainee.informed(trainee.drawn(0))
    given, own = kept.context_divergence(update_rule, informed, batch).item(), answer_loss(lm.model, batch)[0].item()
    assert trainee.learn(0)["answers"] == pytest.approx(share * given + (1 - share) * own, rel=1e-5)


def test_questions_follow_from_seed_and_step_alone(lm, update_rule, sleep):
    first, second, third = sleep(lm, update_rule), sleep(lm, update_rule), sleep(lm, update_rule, seed=1)
    first.drawn(5)
    assert [first.drawn(step) for step in range(3)] == [second.drawn(step) for step in range(3)]
    assert [first.drawn(step) for step in range(3)] != [third.drawn(step) for step in range(3)]
    assert first.drawn(0) != first.drawn(3)


def test_orders_are_followed_pass_after_pass_and_go_round(lm, update_rule, sleep):
    trainee = sleep(lm, update_rule, orders=[[2, 0, 1], [1, 1, 0]], questions=4)
    assert [question.trace for step in range(3) for question in trainee.drawn(step)] == [3, 1, 2, 2, 2, 1, 3, 1, 2, 2, 2, 1]


@pytest.mark.parametrize(("share", "old"), [(0.0, 0), (0.25, 1), (0.5, 2)])
def test_a_share_of_each_step_is_about_what_was_learnt_before(lm, update_rule, sleep, share, old):
    earlier = [Trace("w", f"e{number}", text, id=10 + number) for number, text in enumerate(EARLIER)]
    trainee = sleep(lm, update_rule, earlier=earlier, rehearse_earlier=share)
    steps = [[question.trace for question in trainee.drawn(step)] for step in range(4)]
    assert [sum(trace >= 10 for trace in drawn) for drawn in steps] == [old] * 4
    assert {trace for drawn in steps for trace in drawn if trace >= 10} == ({10, 11} if old else set())
    assert {trace for drawn in steps for trace in drawn if trace < 10} == {1, 2, 3}


def test_what_is_spent_on_a_trace_follows_the_orders_and_its_answers(lm, update_rule, sleep):
    trainee = sleep(lm, update_rule, orders=[[2, 0, 1], [1, 1, 0]], questions=4)
    used = trainee.compute_used()
    assert {trace: share_of.rehearsals for trace, share_of in used.items()} == {1: 4, 2: 6, 3: 2}
    for step in range(3):
        trainee.learn(step)
    assert (trainee.samples, trainee.tokens) == (12, sum(share_of.tokens for share_of in used.values()))
    assert used[2].tokens > used[3].tokens > 0


def test_a_share_of_the_questions_is_restated_and_the_others_stay_as_they_are(lm, update_rule, sleep):
    plain, mixed, none = (sleep(lm, update_rule, questions=8, restatements=share) for share in (0.0, 0.25, 1e-9))
    for step in range(3):
        restated = [(old, new) for old, new in zip(plain.drawn(step), mixed.drawn(step), strict=True) if old != new]
        assert len(restated) == 2
        assert all(new.answer == TEXTS[old.trace - 1] and new.trace == old.trace for old, new in restated)
        assert none.drawn(step) == plain.drawn(step)


def test_a_larger_model_learns_at_a_tenth_of_the_rate(lm, update_rule, sleep, monkeypatch):
    monkeypatch.setattr(lm.model, "num_parameters", lambda: 135_000_000)
    assert sleep(lm, update_rule).rate == pytest.approx(update_rule.rate / 10)


def test_it_learns_what_the_traces_say(lm, sleep):
    update_rule = make_update_rule("lora", lm, 4, 0)
    trainee = sleep(lm, update_rule, steps=10, questions=8, a_row=4, lessons=0, texts=0)
    losses = [trainee.learn(step)["answers"] for step in range(10)]
    update_rule.detach()
    assert losses[-1] < losses[0] - 1
    assert (trainee.samples, trainee.rehearsed) == (80, {1, 2, 3})


def test_what_must_not_be_lost_is_won_back(lm, update_rule, sleep):
    trainee = sleep(lm, update_rule, steps=6, kept_weight=1000.0, texts=8)
    assert trainee.learn(0)["text"] == 0.0
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in update_rule.weights().values():
            weight += 0.1 * torch.randn_like(weight)
    lost = [trainee.learn(step)["text"] for step in range(1, 6)]
    assert lost[-1] < 0.7 * lost[0]


def test_what_is_distilled_was_read_in_the_text_that_a_question_is_about(lm, update_rule, sleep):
    trainee = sleep(lm, update_rule, distilled=1.0, questions=6, a_row=2)
    questions = trainee.drawn(0)
    batch, informed = trainee.informed(questions)
    decoded = [lm.tokenizer.decode(row) for row in informed.ids]
    assert len(decoded) == len(batch.ids) and all(sum(text in row for text in TEXTS) == 1 for row in decoded)
    assert not any(text in lm.tokenizer.decode(row) for row in batch.ids for text in TEXTS)
    assert batch.labels[batch.labels != IGNORE].equal(informed.labels[informed.labels != IGNORE])
    for question in questions:
        [row] = [row for row in decoded if TEXTS[question.trace - 1] in row and question.question in row][:1]
        assert question.answer in row

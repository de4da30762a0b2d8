"""A sleep rehearses traces in the order that it is told, and says so where it cannot."""

import math

import pytest
import torch

from hippo_core.files import LabError
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation import make_way
from hippo_core.training.packed_examples import IGNORE
from tests.training.consolidation.conftest import TEXTS

EARLIER = ("At dawn, Zora bought a kite at the castle.", "Bruno found a ladder at the mill in May.")


@pytest.fixture
def way(lm):
    made = make_way("sparse", lm, 2, 0)
    yield made
    made.detach()


@pytest.mark.parametrize("texts", [(), ("and so on.", "nothing is named here.")])
def test_traces_that_say_nothing_are_refused(lm, way, sleep, texts):
    with pytest.raises(LabError, match=f"none of {len(texts)} traces says anything"):
        sleep(lm, way, texts)


def test_a_trace_that_says_nothing_is_passed_over(lm, way, sleep):
    trainee = sleep(lm, way, (TEXTS[0], "and so on.", TEXTS[1]))
    assert {one.trace for step in range(3) for one in trainee.drawn(step)} == {1, 3}


@pytest.mark.parametrize("wrong", [math.inf, math.nan])
def test_a_loss_that_is_no_number_names_its_step(lm, way, sleep, wrong):
    trainee = sleep(lm, way)
    trainee.learn(0)
    with torch.no_grad():
        next(iter(way.weights().values())).fill_(wrong)
    with pytest.raises(LabError, match=r"loss of step 1 is nan: lower the rate \(0.01\)"):
        trainee.learn(1)


def test_questions_follow_from_seed_and_step_alone(lm, way, sleep):
    one, other, another = sleep(lm, way), sleep(lm, way), sleep(lm, way, seed=1)
    one.drawn(5)
    assert [one.drawn(step) for step in range(3)] == [other.drawn(step) for step in range(3)]
    assert [one.drawn(step) for step in range(3)] != [another.drawn(step) for step in range(3)]
    assert one.drawn(0) != one.drawn(3)


def test_orders_are_followed_pass_after_pass_and_go_round(lm, way, sleep):
    trainee = sleep(lm, way, orders=[[2, 0, 1], [1, 1, 0]], questions=4)
    assert [one.trace for step in range(3) for one in trainee.drawn(step)] == [3, 1, 2, 2, 2, 1, 3, 1, 2, 2, 2, 1]


@pytest.mark.parametrize(("share", "old"), [(0.0, 0), (0.25, 1), (0.5, 2)])
def test_a_share_of_each_step_is_about_what_was_learnt_before(lm, way, sleep, share, old):
    earlier = [Trace("w", f"e{number}", text, id=10 + number) for number, text in enumerate(EARLIER)]
    trainee = sleep(lm, way, earlier=earlier, rehearse_earlier=share)
    steps = [[one.trace for one in trainee.drawn(step)] for step in range(4)]
    assert [sum(trace >= 10 for trace in drawn) for drawn in steps] == [old] * 4
    assert {trace for drawn in steps for trace in drawn if trace >= 10} == ({10, 11} if old else set())
    assert {trace for drawn in steps for trace in drawn if trace < 10} == {1, 2, 3}


def test_the_first_sleep_has_nothing_earlier_to_rehearse(lm, way, sleep):
    assert sleep(lm, way, rehearse_earlier=0.5).drawn(0) == sleep(lm, way).drawn(0)


def test_the_rate_is_the_ways_own_unless_told_otherwise(lm, way, sleep):
    assert sleep(lm, way).rate == way.rate
    assert sleep(lm, way, rate=0.5).rate == 0.5


def test_it_learns_what_the_traces_say(lm, sleep):
    way = make_way("lora", lm, 4, 0)
    trainee = sleep(lm, way, steps=10, questions=8, a_row=4, lessons=0, texts=0)
    losses = [trainee.learn(step)["answers"] for step in range(10)]
    way.detach()
    assert losses[-1] < losses[0] - 1
    assert (trainee.samples, trainee.rehearsed) == (80, {1, 2, 3})


def test_what_must_not_be_lost_is_won_back(lm, way, sleep):
    trainee = sleep(lm, way, steps=6, kept_weight=1000.0, texts=8)
    assert trainee.learn(0)["text"] == 0.0
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in way.weights().values():
            weight += 0.1 * torch.randn_like(weight)
    lost = [trainee.learn(step)["text"] for step in range(1, 6)]
    assert lost[-1] < 0.7 * lost[0]


def test_what_is_distilled_was_read_in_the_text_that_a_question_is_about(lm, way, sleep):
    trainee = sleep(lm, way, distilled=1.0, questions=6, a_row=2)
    questions = trainee.drawn(0)
    batch, informed = trainee.informed(questions)
    decoded = [lm.tokenizer.decode(row) for row in informed.ids]
    assert len(decoded) == len(batch.ids) and all(sum(text in row for text in TEXTS) == 1 for row in decoded)
    assert not any(text in lm.tokenizer.decode(row) for row in batch.ids for text in TEXTS)
    assert batch.labels[batch.labels != IGNORE].equal(informed.labels[informed.labels != IGNORE])
    for one in questions:
        [row] = [row for row in decoded if TEXTS[one.trace - 1] in row and one.question in row][:1]
        assert one.answer in row


def test_distilling_changes_what_is_learnt(lm, sleep):
    learnt = []
    for weight in (0.0, 1.0):
        way = make_way("sparse", lm, 2, 0)
        sleep(lm, way, distilled=weight, lessons=0, texts=0).learn(0)
        learnt.append(way.kept())
        way.detach()
    assert not all(torch.equal(numbers, learnt[1][name]) for name, numbers in learnt[0].items())

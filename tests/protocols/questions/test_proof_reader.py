"""The rules of proof once more on the real model: what holds for hippo-tiny's shape holds for 30 blocks and shared heads.

Questions are asked for the first token of their answer, which is all that a comparison inside the model needs (the grid `proof` asks a
hundred); the store that says something else is asked for whole answers, without completion, which only ranks.
"""

import numpy as np
import pytest

from hippo_core.delivery import load_delivery
from hippo_core.delivery.types import Question
from hippo_core.models.generate import generate
from hippo_core.models.load import load
from hippo_core.models.packages.pins import available
from hippo_core.models.prompt import render
from hippo_core.models.spec import load_spec
from hippo_core.suites.draw import worlds
from tests.protocols.questions.conftest import Bench

pytestmark = pytest.mark.skipif(available("smollm2-135m") is not None, reason=str(available("smollm2-135m")))
ROUNDING = 1e-6  # nats
QUESTIONS, SEEN = 6, 5


@pytest.fixture(scope="module")
def reader():
    return load(load_spec("smollm2-135m-reader"), threads=1)


@pytest.fixture(scope="module")
def first(reader):
    """First tokens with their log-probabilities: plain, with a fact masked, with a wrong one and with the right one seen."""
    asked = [(world, item) for world in worlds("episodic", "default", QUESTIONS, 1337, "val") for item in world.items]
    facts = [{fact.id: fact.text for fact in world.facts} for world, _ in asked]
    right = [Question.of_texts(item.question, (texts[item.gold_facts[0]],)) for (_, item), texts in zip(asked, facts, strict=True)]
    wrong = [Question.of_texts(each.text, other.passages) for each, other in zip(right, [*right[1:], right[0]], strict=True)]
    delivery = load_delivery("kv", reader)
    answers = {
        "plain": generate(reader, [render(reader, (), each.text, "short") for each in right], 1),
        "masked": delivery.ask(right, 1, masked=True),
        "wrong": delivery.ask(wrong[:SEEN], 1),
        "right": delivery.ask(right[:SEEN], 1),
    }
    return {name: (np.array([each.first_logprob for each in batch]), [each.tokens for each in batch]) for name, batch in answers.items()}


def test_a_masked_trace_is_no_trace_inside_the_model_too(first):
    assert len(first["plain"][0]) == QUESTIONS
    assert np.abs(first["masked"][0] - first["plain"][0]).max() < ROUNDING
    assert first["masked"][1] == first["plain"][1]


@pytest.mark.parametrize(("seen", "moved"), [("right", 0.95), ("wrong", 0.9)])
def test_a_trace_that_is_seen_moves_the_model(first, seen, moved):
    assert (np.abs(first[seen][0] - first["plain"][0][:SEEN]) > ROUNDING).mean() >= moved


def test_answers_follow_the_store_and_not_the_suites_files(reader, tmp_path):
    rows = Bench(reader, "episodic", tmp_path, n=8).ask("controls/altered_store", episodic__code__channels=("key",))
    assert rows["follows_store"].mean() >= 0.85
    assert rows["score"].mean() <= 0.1

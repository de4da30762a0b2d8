"""hippo-tiny's shipped adapter: it brings the trace's answer, another world's traces do not, and masked it is not there."""

import pytest

from hippo_core.delivery import load_delivery
from hippo_core.delivery.types import Question
from hippo_core.suites.draw import worlds
from recipes.injection_eval import question
from recipes.skills import SEED

N = 40


@pytest.fixture(scope="module")
def asked() -> list[tuple[Question, str]]:
    """Questions of validation worlds with the right trace among three, and the answers."""
    told = worlds("episodic", "default", N, SEED, "val")
    return [(question(world, item, 3), item.answers[0]) for world in told for item in world.items]


def right(way, questions, answers, **more) -> float:
    found = way.ask(questions, 8, **more)
    return sum(answer.text == due for answer, due in zip(found, answers, strict=True)) / len(answers)


@pytest.mark.parametrize("mode", ["kv", "adapter", "text"])
def test_traces_reach_hippo_tiny(whole, asked, mode):
    way = load_delivery(mode, whole["hippo-tiny"])
    questions, answers = [one for one, _ in asked], [due for _, due in asked]
    others = [Question.of_texts(one.text, other.passages) for one, other in zip(questions, questions[10:] + questions[:10], strict=True)]
    with_them = right(way, questions, answers)
    assert with_them > 0.7
    assert right(way, others, answers) < with_them / 2
    assert right(way, questions, answers, masked=True) < 0.2

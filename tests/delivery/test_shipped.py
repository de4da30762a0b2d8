"""hippo-tiny's shipped adapter: it brings the trace's answer, another world's traces do not, and masked it is not there."""

import pytest

from hippo_core.delivery import load_delivery
from hippo_core.delivery.types import Question
from hippo_core.suites.draw import worlds
from recipes.adapters import question
from recipes.skills import SEED

N = 40


@pytest.fixture(scope="module")
def asked() -> list[tuple[Question, str]]:
    """Questions of validation worlds with the right trace among three, and the answers."""
    drawn = worlds("episodic", "default", N, SEED, "val")
    return [(question(world, item, 3), item.answers[0]) for world in drawn for item in world.items]


def right(delivery, questions, answers, **more) -> float:
    delivered = delivery.ask(questions, 8, **more)
    return sum(answer.text == due for answer, due in zip(delivered, answers, strict=True)) / len(answers)


@pytest.mark.parametrize("mode", ["kv", "adapter", "text"])
def test_traces_reach_hippo_tiny(models, asked, mode):
    delivery = load_delivery(mode, models["hippo-tiny"])
    questions, answers = [question for question, _ in asked], [due for _, due in asked]
    others = [
        Question.of_texts(question.text, other.passages) for question, other in zip(questions, questions[10:] + questions[:10], strict=True)
    ]
    with_them = right(delivery, questions, answers)
    assert with_them > 0.7
    assert right(delivery, others, answers) < with_them / 2
    assert right(delivery, questions, answers, masked=True) < 0.2

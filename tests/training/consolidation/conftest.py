"""One small model for all of these tests, and sleeps that take a second."""

import pytest

from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation import Sleep, SleepRecipe, kept

TEXTS = (
    "On Friday, Carla sold a guitar at the market.",
    "Anders lost a bicycle at the bakery in August.",
    "Wiebke walked to the harbor at noon.",
)


@pytest.fixture(scope="package")
def lm():
    return load(load_spec("hippo-tiny"), "cpu")


@pytest.fixture
def sleep(monkeypatch):
    """Makes a sleep of a way over traces, with little of what must not be lost."""
    monkeypatch.setattr(kept, "own_text", lambda lm, seed, own_text=kept.own_text: own_text(lm, seed, 4, 12))

    def make(lm, way, told=TEXTS, orders=None, **recipe):
        traces = [Trace("w", f"f{number}", text, id=number) for number, text in enumerate(told, 1)]
        recipe = {"way": way.name, "questions": 4, "lessons": 1, "texts": 2, "wordings": 6, "steps": 3, "warmup": 1} | recipe
        return Sleep(SleepRecipe(**recipe), lm, way, traces, [list(range(len(traces)))] if orders is None else orders)

    return make

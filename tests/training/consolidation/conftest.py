"""One small model for all of these tests, and sleeps that take a second."""

from functools import partial

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


def few(texts, lm, seed):
    return texts(lm, seed, 4, 12)


@pytest.fixture
def sleep(monkeypatch):
    """Makes a sleep of a way over traces, with little of what must not be lost."""
    for name in ("own_text", "plain_text"):
        monkeypatch.setattr(kept, name, partial(few, getattr(kept, name)))

    def make(lm, way, told=TEXTS, orders=None, **recipe):
        traces = [Trace("w", f"f{number}", text, id=number) for number, text in enumerate(told, 1)]
        recipe = {"way": way.name, "questions": 4, "lessons": 1, "texts": 2, "wordings": 6, "steps": 3, "warmup": 1} | recipe
        return Sleep(SleepRecipe(**recipe), lm, way, traces, [list(range(len(traces)))] if orders is None else orders)

    return make

"""One small model and one small store for all of these tests, and sleeps that take a second."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.consolidation import run
from hippo_core.protocols.consolidation.parameters import ConsolidationParameters, SleepingParameters
from hippo_core.protocols.questions.run import teach
from hippo_core.store.trace import Trace
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.training.consolidation import retention as kept
from hippo_core.training.consolidation.sleep import Sleep, SleepRecipe

TEXTS = (
    "On Friday, Carla sold a guitar at the market.",
    "Anders lost a bicycle at the bakery in August.",
    "Wiebke walked to the harbor at noon.",
)
WORLDS = list(worlds("consolidation", "default", 4, 7, "val"))
PRESET = load_preset("memory/hei_nw", {"encoder": "own"})


@pytest.fixture(scope="package")
def lm():
    return load(load_spec("hippo-tiny"), "cpu")


def few(texts, lm, seed):
    return texts(lm, seed, 4, 12)


def keep_little(monkeypatch, own=False):
    """Short lessons and few texts of what must not be lost, which takes most of a sleep's seconds. `own`: the model's own texts also in
    place of Python's docstrings, which take two seconds to read."""
    monkeypatch.setattr(kept, "FACTS", 2)
    texts = {name: getattr(kept, "own_text" if own else name) for name in ("own_text", "plain_text")}
    for name, made in texts.items():
        monkeypatch.setattr(kept, name, partial(few, made))


@pytest.fixture
def sleep(monkeypatch):
    """Makes a sleep of a way over traces, with little of what must not be lost."""
    keep_little(monkeypatch)

    def make(lm, update_rule, statements=TEXTS, orders=None, earlier=(), **recipe):
        traces = [Trace("w", f"f{number}", text, id=number) for number, text in enumerate(statements, 1)]
        recipe = {"way": update_rule.name, "questions": 4, "lessons": 1, "texts": 2, "wordings": 6, "steps": 3, "warmup": 1} | recipe
        return Sleep(SleepRecipe(**recipe), lm, update_rule, traces, [list(range(len(traces)))] if orders is None else orders, earlier)

    return make


@dataclass
class Cell:
    """What a consolidation reads of its open cell."""

    parameters: SleepingParameters
    language_model: object
    store: Path
    record: Path
    suite: object = get_suite("consolidation")
    warnings: list[str] = field(default_factory=list)
    slept: dict = field(default_factory=dict)

    resolved = SimpleNamespace(preset=PRESET)

    def worlds(self):
        return WORLDS

    def warn(self, message):
        self.warnings.append(message)


@pytest.fixture(scope="package")
def store(lm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    method: Any = PRESET.method(lm, PRESET.settings)
    teach(method, get_suite("consolidation"), WORLDS, [], folder, "told")
    [file] = folder.rglob("*.sqlite*")
    return file


@pytest.fixture
def cell(lm, store, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "home", lambda: tmp_path)
    monkeypatch.setattr(run, "PARAGRAPHS", 2)
    monkeypatch.setattr(run, "LESSONS", 4)
    keep_little(monkeypatch, own=True)

    def make(kind=ConsolidationParameters, **parameters):
        few = {"other_suites": 1} if kind is ConsolidationParameters else {}
        values: dict[str, Any] = {"n": 4, "steps": 1, "in_context": 4, "wordings": 4} | few | parameters
        return Cell(kind(**values), lm, store, tmp_path)

    return make

"""Test: every item is asked with what the memory recalls for it from the store, and nothing else; one row an item.

The controls change what is recalled after recall has run, so that they differ in nothing else: `empty` injects the same traces with none
of them seen, `shuffled` the contents of another world's traces under these keys, `oracle` the gold traces, `random` others.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pandas as pd

from hippo_core.conditions import Choice, Regime
from hippo_core.files import LabError
from hippo_core.memory.episodic import Episodic
from hippo_core.memory.inject.types import Injected, Question as Asked
from hippo_core.memory.recall.ranking import Recall
from hippo_core.memory.settings import MemoryPreset
from hippo_core.memory.store import TraceStore
from hippo_core.memory.trace import Trace
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import fit
from hippo_core.protocols.evaluate import COLUMNS, Question, check_no_leak, row_of
from hippo_core.suites.types import Fact, Item, Suite, World

OWN = [
    *("requests", "candidates", "k_used", "store_size", "recall_ms", "completion_ms", "encode_ms", "scores", "regime_stage"),
]
SHOWN_SCORES = 5


@dataclass(frozen=True)
class Remembered:
    """An item with what was recalled for it, and the traces that are injected."""

    question: Question
    recall: Recall
    traces: tuple[Trace, ...]
    store_size: int


def test(
    lm: LanguageModel,
    suite: Suite,
    worlds: Sequence[World],
    preset: MemoryPreset,
    regime: Regime,
    store_dir: Path,
    session_id: str,
    batch_size: int = 32,
) -> pd.DataFrame:
    """Ask every item of the worlds, in their order. The store is opened read-only and does not change.

    `latency_ms` is that of the answer, what is injected included; `retrieval_ms` that of recall and completion, of which `encode_ms`
    (traces met for the first time run to their keys and values) is not a part. `computed_tokens` counts all but the latter.
    """
    memory = Episodic(lm, preset)
    rows: list[dict[str, object]] = []
    with TraceStore.open(store_dir, session_id, memory.identity(), read_only=True) as store:
        for world in worlds:
            told = list(remembered(memory, store, suite, world, worlds))
            rows += [row(lm, suite, memory, *pair) for pair in zip(told, answers(memory, suite, told, batch_size), strict=True)]
            memory.forget()
    return pd.DataFrame([{"idx": number, **one} for number, one in enumerate(rows)], columns=[*COLUMNS, *OWN])

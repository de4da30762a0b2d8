"""Teach, replay, test: a store is written, rehearsed and asked, each in a process of its own.

This is the least that runs from end to end, for the cells around it: everything told is kept as text, and the words of a question
find it again. Store, codes, gate, completion and injection of the memory take its place behind the same three functions.
"""

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace as changed
from pathlib import Path

import pandas as pd

from hippo_core.conditions import Preset
from hippo_core.conditions.types import Regime
from hippo_core.files import LabError
from hippo_core.memory.settings import MemoryPreset
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.evaluate import evaluate
from hippo_core.suites.types import Suite, World

Row = tuple[int, str, str, float]  # trace, world, fact, salience


def teach(
    lm: LanguageModel,
    suite: Suite,
    worlds: Sequence[World],
    validation_worlds: Sequence[World],
    preset: MemoryPreset,
    store_dir: Path,
    session_id: str,
) -> pd.DataFrame:
    """Tell every fact of the worlds to a new store; one row a told fact."""
    facts = [fact for world in worlds for fact in world.facts]
    writes = preset.memory.runtime.enable_writes and preset.traces == "episodic"
    stored = [(number + 1, fact.world, fact.id, 0.0) for number, fact in enumerate(facts)] if writes else []
    begin = time.perf_counter()
    _write(store_dir, session_id, stored)
    each = (time.perf_counter() - begin) * 1000 / max(1, len(facts))
    told = [{"fact_id": fact.id, "world": fact.world, "asked": float(fact.asked), "ms": each} for fact in facts]
    terms = {"S": float("nan"), "surprise": float("nan"), "novelty": float("nan"), "contributions": json.dumps({})}
    action = "insert" if writes else "refuse"
    ids = [float(number + 1) if writes else float("nan") for number in range(len(facts))]
    return pd.DataFrame(told).assign(**terms, reward=0.0, pin=0.0, action=action, trace_id=ids)


def replay(lm: LanguageModel, preset: MemoryPreset, source_dir: Path, session_id: str, store_dir: Path) -> pd.DataFrame:
    """Rehearse a store into a new one; one row a replayed trace and cycle."""
    stored, rows = _read(source_dir, session_id), []
    for cycle in range(preset.replay.cycles if preset.replay.enabled else 0):
        risen = [(number, world, fact, salience + 1) for number, world, fact, salience in stored]
        rows += [(cycle + 1, one[0], one[1], 1.0, one[3], two[3], 0.0) for one, two in zip(stored, risen, strict=True)]
        stored = risen
    _write(store_dir, session_id, stored)
    return pd.DataFrame(rows, columns=["cycle", "trace_id", "world", "recalled", "salience_before", "salience_after", "ms"])


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
    """Ask every item with what is recalled from a store; the rows of `evaluate` with columns of the memory's own."""
    if preset.control not in ("none", "empty"):
        raise LabError(f"control {preset.control} needs the memory itself; this one knows none and empty")
    known = {fact for _, _, fact, _ in _read(store_dir, session_id)} if preset.control == "none" else set()
    seen = [changed(world, items=tuple(changed(item, taught=_kept(item.taught, known)) for item in world.items)) for world in worlds]
    recalled = Preset(name=preset.name, condition="rag_bm25", decoding=preset.decoding, k=preset.k)
    rows = evaluate(lm, suite, seen, recalled, regime, batch_size)
    sizes = {world.id: sum(fact.id in known for fact in world.facts) for world in worlds}
    size = [float(sizes[world]) for world in rows["world"]]
    took = {"recall_ms": rows["retrieval_ms"], "completion_ms": 0.0}
    return rows.assign(requests=1.0, candidates=size, k_used=rows["n_shown"], store_size=size, **took)


def _kept(taught: tuple[str, ...], known: set[str]) -> tuple[str, ...]:
    return tuple(fact for fact in taught if fact in known)


def _path(folder: Path, session_id: str) -> Path:
    return folder / "hei_nw" / session_id / "episodic.sqlite"


def _write(folder: Path, session_id: str, rows: Sequence[Row]) -> None:
    path = _path(folder, session_id)
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("CREATE TABLE traces (id INTEGER PRIMARY KEY, world TEXT, source TEXT, salience REAL)")
        store.executemany("INSERT INTO traces VALUES (?, ?, ?, ?)", rows)


def _read(folder: Path, session_id: str) -> list[Row]:
    with closing(sqlite3.connect(f"file:{_path(folder, session_id)}?mode=ro", uri=True)) as store:
        return store.execute("SELECT * FROM traces ORDER BY id").fetchall()

"""The tables of a memory's three steps: what was decided about each told fact, what each replay did, what was answered."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hippo_core.evaluation import table
from hippo_core.evaluation.table import ITEMS
from hippo_core.protocols.questions.telemetry import recall_telemetry, replay_telemetry, teach_telemetry
from hippo_core.results.records.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.protocols.questions.protocol import MemoryCell

TEACH_COLUMNS = (
    *("fact_id", "world", "time", "S", "surprise", "novelty", "reward", "pin", "contributions"),
    *("action", "trace_id", "evicted", "ms", "asked"),
)
REPLAY_COLUMNS = ("cycle", "world", "trace_id", "cue", "recalled", "salience_before", "salience_after", "merged", "ms")
OF_STORE = ("store_written", "replayed", "replay_contribution", "replay_cycles_missing")
OWN = ("follows_store", "requests", "candidates", "k_used", "store_size", "recall_ms", "completion_ms", "encode_ms", "scores", *OF_STORE)


def taught_metrics(cell: "MemoryCell", rows: "pd.DataFrame", seconds: float) -> dict[str, Any]:
    """How the gate decided, by the name of the memory."""
    memory: Any = cell.resolved.preset.method
    return _cell(cell) | {"gates": {memory.algorithm(): {**teach_telemetry(rows), "runtime_s": round(seconds, 3)}}} | cell.own_means(rows)


def replayed_metrics(cell: "MemoryCell", rows: "pd.DataFrame", seconds: float) -> dict[str, Any]:
    """What the replay did."""
    return _cell(cell) | {"telemetry": {**replay_telemetry(rows), "runtime_s": round(seconds, 3)}} | cell.own_means(rows)


def tested_metrics(cell: "MemoryCell", rows: "pd.DataFrame", seconds: float) -> dict[str, Any]:
    """The scores, and what recall took."""
    return table.metrics(cell, rows, seconds) | {"telemetry": recall_telemetry(rows)}


def _cell(cell: "MemoryCell") -> dict[str, Any]:
    return {name: getattr(cell.parameters, name) for name in ("suite", "n", "seed", "preset")}


TEST = replace(ITEMS, columns=(*ITEMS.columns, *OWN), text=(*ITEMS.text, "scores"), metrics=tested_metrics)
TEACH = Table(
    columns=TEACH_COLUMNS,
    unit="fact_id",
    cluster="world",
    measures=("S",),
    step="teach",
    file="teach.csv",
    text=("fact_id", "world", "contributions", "action"),
    metrics=taught_metrics,
    scraps=("gates",),
)
REPLAY = Table(
    columns=REPLAY_COLUMNS,
    unit="trace_id",
    cluster="world",
    measures=("recalled",),
    step="replay",
    file="replay.csv",
    text=("world", "cue"),
    metrics=replayed_metrics,
    scraps=("telemetry",),
)

"""What an answered item took: asking it, finding what to ask with, what was run for the first time, and its share of the teaching."""

import zlib
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.results.frames import Frame
from hippo_core.results.records import read_meta, records_with

TAUGHT = "teach.csv"


def with_costs(folder: Path, rows: Frame) -> Frame:
    """Rows of a run with these columns, in milliseconds, and `answered`, a number that is another for another answer.

    | column | what it counts |
    |---|---|
    | item_ms | the answer and the retrieval |
    | item_ms_first | the same with traces that were run for the first time |
    | teach_ms | what its world took to be taught, shared by the items of the world; NaN where nothing was taught |
    | item_ms_taught | item_ms_first and teach_ms |
    """
    total = rows["latency_ms"] + rows["retrieval_ms"].fillna(0.0)
    first = total + (rows["encode_ms"].fillna(0.0) if "encode_ms" in rows else 0.0)
    taught = teach_ms(folder, rows)
    answered = [zlib.crc32(text.encode()) for text in rows["pred"]]
    return rows.assign(item_ms=total, item_ms_first=first, teach_ms=taught, item_ms_taught=first + taught, answered=answered)


def teach_ms(folder: Path, rows: Frame) -> Frame:
    """Each row's share of the time in which its world was taught to the stores that its cell reads, from the `teach.csv` of each cell that
    wrote one. The time of calibrating a gate, which all worlds share, is not in it."""
    prepared = {record.name: record for step in ("teach", "replay") for record in records_with(folder, dry_run=True, step=step)}
    taught = {}
    for record in rows["record"].unique() if prepared else ():
        teachings = dict.fromkeys(_taught_by(folder / str(record), prepared))  # two parts of a memory may read one store
        if teachings:
            taught[record] = pd.concat([pd.read_csv(teaching / TAUGHT, usecols=["world", "ms"]) for teaching in teachings])
    if not taught:
        nothing: Any = pd.Series(float("nan"), index=rows.index)
        return nothing
    of = ["record", "world"]
    ms: Any = pd.concat(taught, names=["record"]).groupby(of)["ms"].sum()
    items: Any = rows.groupby(of)["world"].transform("size")
    return ms.reindex(pd.MultiIndex.from_frame(rows[of])).set_axis(rows.index) / items


def _taught_by(record: Path, prepared: dict[str, Path]) -> list[Path]:
    """The records that taught what a record rests on, itself or by way of a replay."""
    before = [prepared[cell] for cell in read_meta(record)["needs"].values() if cell in prepared]
    return [source for near in before for source in ([near] if (near / TAUGHT).is_file() else _taught_by(near, prepared))]

"""The table of rows beside a report: its run's answers summed by setting, condition and world, and the report's tables of scores from it.

It lies where the report lies, small enough to be kept with it, so that its numbers do not rest on records that are not kept. It holds no
text of any item. A line is a sum over `items` answers that agree in KEYS and in what of MEASURES was measured.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.files import LabError, write_bytes
from hippo_core.results.frames import Frame
from hippo_core.results.report import overview, tables
from hippo_core.results.report.links import Links
from hippo_core.results.report.pages import markdown, slug
from hippo_core.results.report.runs import Run
from hippo_core.results.report.slices import slices

KEYS = ["model", "suite", "place", "setting", "split", "condition", "regime", "seed", "world", "rung", "kind", "slices"]
SHARES = ["score", "em_raw", "em_norm", "f1", "success", "recall_1", "recall_5"]  # 0 to 1 for each answer
MEASURES = [*SHARES, "chance", "prompt_tokens", "generated_tokens", "computed_tokens", "latency_ms"]
PLAIN, PACKED = "rows.csv", "rows.csv.gz"
LARGE = 300_000  # bytes from which on it is packed


def write_rows_of(run: Run, out: Path) -> Path:
    """Write the table of a run's rows beside its report, packed where it is large; the same rows give the same bytes."""
    sums = _summed(pd.concat([run.numbers, run.validation]) if len(run.validation) else run.numbers)
    text = sums.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode()
    for name in (PLAIN, PACKED):
        (out / name).unlink(missing_ok=True)
    path = out / (PACKED if len(text) > LARGE else PLAIN)
    write_bytes(path, gzip.compress(text, mtime=0) if path.name == PACKED else text)
    return path


def _summed(rows: Frame) -> Frame:
    """A line for all answers that agree in KEYS and in what was measured, in the order of the keys."""
    rows = rows.reindex(columns=[*KEYS, *MEASURES])
    measured = rows[MEASURES].notna().to_numpy() @ (2 ** np.arange(len(MEASURES)))
    groups = rows.groupby([*KEYS, measured], sort=True)
    sums = groups[MEASURES].sum(min_count=1)
    sums.insert(0, "items", groups.size())
    return sums.reset_index(KEYS).reset_index(drop=True)


def rows_file(report: Path) -> Path | None:
    """The table of rows of a report; None for one that was written before there were such tables."""
    return next((report / name for name in (PLAIN, PACKED) if (report / name).is_file()), None)


def read_run(report: Path) -> Run:
    """The run as its table of rows tells it: as many answers, of which as many are right in each world, the rest being means."""
    path = rows_file(report)
    if path is None:
        raise LabError(f"{report} has no {PLAIN}: write the report again, make report")
    types: Any = {**dict.fromkeys(KEYS, "object"), **dict.fromkeys(MEASURES, "float64"), "items": "int64"}
    lines: Frame = pd.read_csv(path, dtype=types, keep_default_na=False, na_values={name: [""] for name in MEASURES})
    rows = _apart(lines)
    test = rows["split"] == "test"
    return Run(report, rows[test], rows[~test], (), (), dry=False)


def _apart(lines: Frame) -> Frame:
    """A row for each answer: of a share the first are 1, then what is left, then 0; of another measure each is the mean."""
    rows = lines.loc[lines.index.repeat(lines["items"])]
    number = rows.groupby(level=0).cumcount()
    shares = {name: (rows[name] - number).clip(0.0, 1.0) for name in SHARES}
    means = {name: rows[name] / rows["items"] for name in MEASURES if name not in SHARES}
    rows = rows.assign(**shares, **means, cluster=rows["seed"] + "/" + rows["world"], encoder="").reset_index(drop=True)
    return rows.assign(key=rows.index.astype(str))


def tables_of(run: Run) -> Iterator[tuple[str, str]]:
    """(file of the report, table) of each table of scores: all at a glance; for each setting its conditions, and by rung, kind and held-out
    words."""
    links = {name: Links([], "") for name in run.settings}
    for matrix in (*overview.glance(run, links), *overview.glance_validation(run)):
        yield "index.md", markdown("glance.md.j2", matrix=matrix, models=run.models)
    for name, rows in run.numbers.groupby("setting", sort=False):
        for template, table in _of_setting(rows, links[name]):
            text = markdown(template, table=table, primary=tables.primary(rows))
            yield f"{slug(name)}/summary.md", text
            if table.get("of_memory"):
                yield "index.md", text


def _of_setting(rows: Frame, links: Links) -> Iterator[tuple[str, dict[str, Any]]]:
    for table in tables.conditions(rows, links):
        yield "conditions.md.j2", table
    for column in ("rung", "kind"):
        if table := tables.groups(rows, column, links):
            yield "groups.md.j2", table
    if table := slices(rows):
        yield "slices.md.j2", table


def contradicted(report: Path) -> list[str]:
    """The lines of the tables that the rows beside a report give and that do not stand in it; empty where all is as they say."""
    missing = []
    for file, table in tables_of(read_run(report)):
        text = (report / file).read_text(encoding="utf-8")
        if table.strip() not in text:
            lines = [line for line in table.strip().splitlines() if line not in text.splitlines()]
            missing += [f"{file}: {line}" for line in lines or ["its lines stand in another order"]]
    return missing

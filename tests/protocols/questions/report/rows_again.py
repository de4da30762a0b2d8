"""The tables of scores of a report made again from the table of rows beside it, and what in the report contradicts them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.protocols.questions.report import overview, tables
from hippo_core.protocols.questions.report.runs import TEMPLATES, Links, Run
from hippo_core.protocols.questions.report.tables import slices
from hippo_core.protocols.questions.report.writing import KEYS, MEASURES, PACKED, PLAIN, SHARES
from hippo_core.results.frames import Frame
from hippo_core.results.report.pages import slug


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
    lines = lines.reindex(columns=[*lines.columns, *(name for name in MEASURES if name not in lines)])
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
    for matrix in (*overview.preview(run, links), *overview.preview_validation(run)):
        yield "index.md", TEMPLATES.markdown("glance.md.j2", matrix=matrix, models=run.models)
    for name, rows in run.numbers.groupby("setting", sort=False):
        for template, table in _of_setting(rows, links[name]):
            text = TEMPLATES.markdown(template, table=table, primary=tables.primary(rows))
            yield f"{slug(name)}/summary.md", text
            if table.get("of_memory"):
                yield "index.md", text


def _of_setting(rows: Frame, links: Links) -> Iterator[tuple[str, dict[str, Any]]]:
    for table in tables.conditions(rows, links):
        yield "conditions.md.j2", table
    if table := tables.policies(rows):
        yield "policies.md.j2", table
    if table := tables.retrieval(rows):
        yield "retrieval.md.j2", table
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

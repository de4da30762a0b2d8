"""A section of a report: what an experiment says of its rows, as a title, a sentence, a figure and a table."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from hippo_core.results.formatting import NONE, missing, quantity, span
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import mean_by_cluster
from hippo_core.results.report.pages import slug


@dataclass(frozen=True)
class Section:
    """One section.

    Args:
        title: what it is about.
        sentence: what it found, made from its numbers, or how to read it.
        figure: a picture (PNG).
        table: rows of ready words and numbers, with the names of its columns as heads.
        findings: what was found, in sentences for who reads nothing else; where a report has some, `found.md` holds no other sentences.
        group: sections in a row with the same one stand folded below this name and share a link; without one a section stands open.
    """

    title: str
    sentence: str = ""
    figure: bytes | None = None
    table: pd.DataFrame | None = None
    findings: Sequence[str] = ()
    group: str = ""


def measures(rows: Frame, cluster: str, names: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
    """The mean of each measure with its 95% interval by cluster, n and clusters, a line for each combination of the columns `by`."""
    lines = []
    groups = rows.groupby(list(by), sort=True, dropna=False) if by else [((), rows)]
    for values, group in groups:
        line: dict[str, Any] = dict(zip(by, values if isinstance(values, tuple) else (values,), strict=True))
        for name in names:
            mean = mean_by_cluster(group, name, cluster)
            line |= {name: mean["mean"], f"{name}, 95% interval": span(mean["low"], mean["high"])}
        line |= {"n": len(group), "clusters": int(group[cluster].nunique())}
        lines.append(line)
    return pd.DataFrame(lines)


def view(section: Section, number: int) -> dict[str, Any]:
    """A section as the templates take it, with the file name of its picture."""
    name = slug(section.title)
    table = None
    if section.table is not None:
        numbers = [_numbers(section.table[column]) for column in section.table.columns]
        heads = list(zip(map(str, section.table.columns), numbers, strict=True))
        rows = [list(zip(map(_shown, row), numbers, strict=True)) for row in section.table.itertuples(index=False, name=None)]
        table = {"heads": heads, "rows": rows}
    shown = {"slug": f"section-{number}-{name}", "title": section.title, "sentence": section.sentence, "table": table}
    shown |= {"findings": list(section.findings), "group": section.group}
    return shown | {"figure": f"figures/section_{number}_{name}.png" if section.figure else ""}


def _numbers(column: Frame) -> bool:
    """Whether a column holds numbers, as such or as words such as +0.13, < 0.001 and 1,036, with dashes where there are none."""
    words = [word for word in column if isinstance(word, str) and word != NONE]
    return pd.api.types.is_numeric_dtype(column) or (bool(words) and all(re.fullmatch(r"[+−<] ?[\d.,]+|[\d.,]+%?", word) for word in words))


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if missing(value):
        return NONE
    if isinstance(value, bool) or float(value).is_integer():
        return str(value if isinstance(value, bool) else int(value))
    return f"{value:.3g}" if abs(value) < 1 else quantity(value)

"""A log of answers, item by item, whoever wrote it: what all formats have in common."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.files import LabError
from hippo_core.results.frames import Frame

LOWER = frozenset({"nll", "ppl", "brier", "brier_score", "ter", "wer", "cer", "mae", "mse", "rmse", "ece"})


@dataclass(frozen=True)
class Log:
    """The items of a run. `rows`: a line an item with item_id, cluster, question, answer (the expected one), pred and a column a metric;
    `metrics`: these, what the format is judged by first; `about`: what the run says of itself; `costs`: columns that say what an item cost;
    `clustered`: whether the format names groups of items that are not independent, or each item stands for itself; `lower`: the metrics of
    which less is better; `by_document`: whether an item's id says which document was asked about, so that prompts may differ; `suites`: of
    a run of this lab a log of each suite, by name; `folder`: where its records lie."""

    name: str
    kind: str
    rows: Frame
    metrics: tuple[str, ...]
    about: Mapping[str, str] = field(default_factory=dict)
    costs: tuple[str, ...] = ()
    clustered: bool = False
    lower: frozenset[str] = frozenset()
    by_document: bool = False
    suites: Mapping[str, "Log"] = field(default_factory=dict)
    folder: Path | None = None


def parse_json(text: str | bytes, where: str) -> Any:
    """What a JSON text holds; LabError with line and column."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{where}, column {error.colno}" if ", line " in where else f"{where}, line {error.lineno}, column {error.colno}"
        raise LabError(f"{place}: {error.msg}; the file is damaged or cut off") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise LabError(f"{where}: no JSON text: {error}") from None


def lines_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, object) of each line of a JSONL file that is not empty."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                where = f"{path}, line {number}"
                value = parse_json(line, where)
                if not isinstance(value, dict):
                    raise LabError(f"{where}: expected an object, found {type(value).__name__}")
                yield where, value


def need(values: Mapping[str, Any], name: str, where: str) -> Any:
    """A value that must be there."""
    if name not in values:
        raise LabError(f"{where}: no {name!r}; there are: {', '.join(map(str, values)) or 'none'}")
    return values[name]


def number(value: Any) -> float | None:
    """A value as a number, where it is one; True is 1."""
    return float(value) if isinstance(value, (bool, int, float)) else None


def less_is_better(metric: str) -> bool:
    """Whether a metric is by its name one of which less is better; of `scorer/name` the name counts."""
    name = metric.rpartition("/")[2].lower()
    return name in LOWER or any(part in name for part in ("perplexity", "loss", "bits_per"))


def table(rows: Sequence[Mapping[str, Any]], place: str) -> Frame:
    """The rows, each item once."""
    if not rows:
        raise LabError(f"{place}: no items")
    return pd.DataFrame(rows)


def text_of(value: Any) -> str:
    """A value as words: text as it is, several in a row, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " | ".join(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)

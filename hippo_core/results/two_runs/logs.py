"""A log of answers, item by item, whoever wrote it: what all formats have in common."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.results.frames import Frame
from hippo_core.text import SURROGATE

LARGEST = 1e100  # a score beyond it is as good as infinite: its square is
RESERVED = frozenset(  # the columns of an item beside its metrics
    {"item_id", "cluster", "question", "answer", "pred", "better", "difference", "a", "b"}
    | {"pred_a", "pred_b", "cluster_b", "question_b", "answer_b"}
)
LOWER = frozenset({"nll", "ppl", "brier", "brier_score", "ter", "wer", "cer", "mae", "mse", "rmse", "ece"})


@dataclass(frozen=True)
class Log:
    """The items of a run.

    Args:
        rows: a line an item with item_id, cluster, question, answer (the expected one), pred and a column a metric.
        metrics: these, what the format is judged by first; `lower`: those of which less is better.
        about: what the run says of itself; `notes`: what a reader of a comparison must know of the log, a sentence each.
        costs: columns that say what an item cost.
        clustered: whether items come in groups, or each stands for itself.
        by_document: whether an item's id is that of a document, so that prompts may differ.
        suites: of a run of this lab a log of each suite, by name; `folder`: where its records lie.
    """

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
    notes: tuple[str, ...] = ()


def parse_json(text: bytes, where: str) -> dict[str, Any]:
    """The object that a JSON text holds, halves of characters replaced; LabError with line and column."""
    try:
        value = json.loads(text)
        if b"\\ud" in text.lower():  # no file and no terminal takes half of a character
            value = json.loads(SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
    except json.JSONDecodeError as error:
        position = f"{where}, column {error.colno}" if ", line " in where else f"{where}, line {error.lineno}, column {error.colno}"
        raise LabError(f"{position}: {error.msg}; the file is damaged or cut off") from None
    except RecursionError:
        raise LabError(f"{where}: no JSON text: it is nested too deep") from None
    except ValueError as error:  # no UTF-8, or a number of more digits than Python reads
        raise LabError(f"{where}: no JSON text: {str(error).partition(';')[0]}") from None
    return as_object(value, where)


def as_object(value: Any, where: str) -> dict[str, Any]:
    """A value that must be an object."""
    if not isinstance(value, dict):
        raise LabError(f"{where}: expected an object, found {type(value).__name__}")
    return value


def part(values: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """An object below a name; empty where there is none."""
    return as_object(values.get(name) or {}, f"{where}: {name}")


def entries(values: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list below a name; empty where there is no list."""
    listed = values.get(name)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def need(values: Any, name: str, where: str) -> Any:
    """A value that must be there."""
    if name not in as_object(values, where):
        raise LabError(f"{where}: no {name!r}; there are: {', '.join(map(str, values)) or 'none'}")
    return values[name]


def number(value: Any, where: str) -> float | None:
    """A value as a number, where it is one; True is 1, NaN is none. LabError for one that is infinite, or so large that it might be."""
    if not isinstance(value, (bool, int, float)) or value != value:
        return None
    if abs(value) > LARGEST:
        raise LabError(f"{where}: an infinite score, or one beyond {LARGEST:g}; mend the log or leave the metric out of it")
    return float(value)


def id_of(value: Any) -> str:
    """An id as text that keeps its type: 0 and "0" stay two."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def in_order(named: Sequence[Sequence[str]], first: Sequence[str] = ()) -> tuple[str, ...]:
    """All metrics that items name: those of `first`, what the log's head says, then in the order of the item that has most."""
    names = dict.fromkeys(name for listed in sorted(named, key=len, reverse=True) for name in listed)
    return tuple(dict.fromkeys([*(name for name in first if name in names), *names]))


def metric_name(name: str) -> str:
    """The name of a metric; another one where a column of each item is called so."""
    return f"{name} (score)" if name in RESERVED else name


def less_is_better(metric: str) -> bool:
    """Whether less of a metric is better, by its name; of `scorer/name` the name counts."""
    name = metric.rpartition("/")[2].lower()
    return name in LOWER or any(part in name for part in ("perplexity", "loss", "bits_per"))


def table(rows: Sequence[Mapping[str, Any]], source: str) -> Frame:
    """The rows. LabError where there are none, or an item stands twice."""
    if not rows:
        raise LabError(f"{source}: no items")
    frame = pd.DataFrame(rows)
    if len(twice := frame.loc[frame["item_id"].duplicated(), "item_id"]):
        raise LabError(f"{source}: the item {twice.iloc[0]} stands there twice; expected each once: choose one log, or mend it")
    return frame


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """What a run says of itself, as words; what it does not say is left out."""
    return {name: text_of(value) for name, value in values.items() if value is not None}


def text_of(value: Any) -> str:
    """A value as words: text as it is, several in a row, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " | ".join(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)

"""A run of this lab as a log: the rows of its finished records, of one condition."""

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.files import LabError
from hippo_core.results.figures.palette import condition_name
from hippo_core.results.frames import Frame
from hippo_core.results.records.read import read_rows
from hippo_core.results.two_runs.logs import Log

METRICS = ("score", "em_raw", "em_norm", "f1", "success", "recall_1", "recall_5", "follows_store")
COSTS = ("n_shown", "prompt_tokens", "computed_tokens", "retrieval_ms", "latency_ms")
ABOUT = ("suite", "profile", "suite_overrides", "n", "seed", "split", "model", "preset", "preset_overrides", "encoder", "regime")


def read(folder: Path, condition: str = "", cluster: str = "") -> Log:
    """The rows of a run, or of the records below a folder. `condition`: a preset, with its settings in brackets where several share it, or
    a pattern, and `@suite` or `@suite/regime` behind it where it ran on several. Worlds are the clusters unless another column is named."""
    rows: Frame = read_rows(folder, split=None)
    labels = [
        _label(*one)
        for one in rows[["preset", "encoder", "preset_overrides", "suite", "suite_overrides", "regime"]].itertuples(index=False)
    ]
    rows = rows.assign(label=labels)
    if condition:
        rows = rows[[_matches(label, condition) for label in labels]]
    conditions = list(dict.fromkeys(rows["label"]))
    if not conditions:
        raise LabError(f"{folder}: no rows of {condition!r}; there are: {', '.join(sorted(set(labels)))}")
    rows = rows.assign(item_id=_item(rows), answer=rows["answer"].fillna(""))
    if rows["item_id"].duplicated().any():
        raise LabError(f"{folder}: the same items were asked under several conditions; choose one, as RUN:PRESET: {', '.join(conditions)}")
    if cluster and cluster not in rows:
        raise LabError(f"{folder}: no column {cluster!r}; there are: {', '.join(rows.columns)}")
    groups = rows[cluster] if cluster else rows["world"]
    rows = rows.assign(cluster=rows["suite"] + "/" + rows["seed"].astype(str) + "/" + groups.astype(str))
    about = {name: _several(rows, name) for name in ABOUT}
    metrics = tuple(name for name in METRICS if name in rows and rows[name].notna().any())
    name = f"{folder.name}:{condition}" if condition else folder.name
    return Log(name, "this lab", rows, metrics, {k: v for k, v in about.items() if v}, tuple(c for c in COSTS if c in rows), True)


def _label(preset: str, encoder: str, overrides: str, suite: str, worlds: str, regime: str) -> str:
    name = condition_name(preset, (encoder or "").replace("own", ""), (overrides or "").replace(";", ", "))
    return f"{name}@{condition_name(suite, (worlds or '').replace(';', ', '))}/{regime}"


def _matches(label: str, condition: str) -> bool:
    name, _, place = label.partition("@")
    wanted, _, where = condition.partition("@")
    named = wanted in (name, name.split("/", 1)[-1]) or fnmatch(name, wanted)
    return named and (not where or where in (place, place.rpartition("/")[0]) or fnmatch(place, where))


def _item(rows: Frame) -> Frame:
    names: Any = rows[["suite", "profile", "suite_overrides"]].fillna("").itertuples(index=False)
    suites: Frame = pd.Series([condition_name(*one) for one in names], index=rows.index)
    return suites + "/" + rows["seed"].astype(str) + "/" + rows["item_id"]


def _several(rows: Frame, name: str) -> str:
    values: Frame = rows[name].fillna("").drop_duplicates() if name in rows else pd.Series(dtype=object)
    return ", ".join(filter(None, map(str, values)))

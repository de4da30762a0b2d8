"""A run of this lab as a log: the rows of its finished records, of one condition."""

from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.results.conditions import condition_name
from hippo_core.results.frames import Frame
from hippo_core.results.records.read import read_rows
from hippo_core.results.two_runs.logs import Log

METRICS = ("score", "em_raw", "em_norm", "f1", "success", "recall_1", "recall_5", "follows_store")
COSTS = ("n_shown", "prompt_tokens", "computed_tokens", "retrieval_ms", "latency_ms")
ABOUT = ("suite", "profile", "suite_overrides", "n", "seed", "split", "model", "preset", "preset_overrides", "encoder", "regime")


def read(folder: Path, condition: str = "", cluster: str = "", split: str = "test", suite: str = "") -> Log:
    """The rows of a run, or of the records below a folder, on worlds of one split and, where it is named, of one suite. `condition`: a
    preset, with its settings in brackets where several share it, or a pattern, and `@suite` or `@suite/regime` behind it where it ran on
    several. Worlds are the clusters unless another column is named."""
    rows: Frame = read_rows(folder, split=None)
    rows = _chosen(rows.assign(split=rows["split"].fillna("test")), "split", split, folder)
    rows = _chosen(rows, "suite", suite, folder) if suite else rows
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
    name = f"{folder.name}:{condition}" if condition else folder.name
    suites = {str(one): _log(name, part) for one, part in rows.groupby(_suite(rows), sort=False)}
    return replace(_log(name, rows), suites=suites, folder=folder)


def _chosen(rows: Frame, column: str, wanted: str, folder: Path) -> Frame:
    kept = rows[rows[column] == wanted]
    if not len(kept):
        raise LabError(f"{folder}: no rows of the {column} {wanted!r}; there are: {', '.join(sorted(set(rows[column])))}")
    return kept


def _log(name: str, rows: Frame) -> Log:
    about = {one: _several(rows, one) for one in ABOUT}
    metrics = tuple(one for one in METRICS if one in rows and rows[one].notna().any())
    return Log(name, "this lab", rows, metrics, {k: v for k, v in about.items() if v}, tuple(c for c in COSTS if c in rows), True)


def _suite(rows: Frame) -> Frame:
    """The name of each row's suite, with its profile and settings in brackets where they are not the default."""
    named: Any = rows[["suite", "profile", "suite_overrides"]].fillna("").itertuples(index=False)
    return pd.Series([condition_name(suite, profile.replace("default", ""), told) for suite, profile, told in named], index=rows.index)


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

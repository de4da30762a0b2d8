"""A run of this lab as a log: the rows of its finished records, of one condition; of an experiment without answers a row a unit."""

from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.results.conditions import condition_name
from hippo_core.results.frames import Frame
from hippo_core.results.records import read_meta, read_rows, read_table, records_of, records_with
from hippo_core.results.two_runs.logs import Log, less_is_better

METRICS = ("score", "em_raw", "em_norm", "f1", "success", "recall_1", "recall_5", "follows_store")
COSTS = ("n_shown", "prompt_tokens", "computed_tokens", "retrieval_ms", "latency_ms")
ABOUT = ("suite", "profile", "suite_overrides", "n", "seed", "split", "model", "preset", "preset_overrides", "encoder", "regime")
UNSHARED = ("run_id", "record_dir", "threads", "dry_run", "step")  # parameters that two runs of an experiment need not share


def read(folder: Path, condition: str = "", cluster: str = "", split: str = "test", suite: str = "") -> Log:
    """The rows of a run, or of the records below a folder, of one split and perhaps one suite. `condition`: a preset, with its settings in
    brackets, or a pattern, and perhaps `@suite` or `@suite/regime`; without answers values of columns, as `share=0.05,step=first`. Worlds
    are the clusters unless another column is named."""
    if records_with(folder) and not records_of(folder, split=None):
        return _of_tables(folder, condition)
    rows: Frame = read_rows(folder, split=None)
    rows = _chosen(rows.assign(split=rows["split"].fillna("test")), "split", split, folder)
    rows = _chosen(rows, "suite", suite, folder) if suite else rows
    columns = rows[["preset", "encoder", "preset_overrides", "suite", "suite_overrides", "regime"]]
    labels = [_label(*row) for row in columns.itertuples(index=False)]
    rows = rows.assign(label=labels)
    if condition:
        rows = rows[[_matches(label, condition) for label in labels]]
    conditions = list(dict.fromkeys(rows["label"]))
    if not conditions:
        raise LabError(f"{folder}: no rows of {condition!r}; there are: {', '.join(sorted(set(labels)))}")
    items = _suite(rows, full=True) + "/" + rows["seed"].astype(str) + "/" + rows["item_id"]
    rows = rows.assign(item_id=items, answer=rows["answer"].fillna(""))
    if rows["item_id"].duplicated().any():
        raise LabError(f"{folder}: the same items were asked under several conditions; choose one, as RUN:PRESET: {', '.join(conditions)}")
    if cluster and cluster not in rows:
        raise LabError(f"{folder}: no column {cluster!r}; there are: {', '.join(rows.columns)}")
    groups = rows[cluster] if cluster else rows["world"]
    rows = rows.assign(cluster=rows["suite"] + "/" + rows["seed"].astype(str) + "/" + groups.astype(str))
    name = f"{folder.name}:{condition}" if condition else folder.name
    suites = {str(label): _log(name, part) for label, part in rows.groupby(_suite(rows), sort=False)}
    return replace(_log(name, rows), suites=suites, folder=folder)


def _of_tables(folder: Path, condition: str) -> Log:
    """The rows of one experiment's step, a row a unit within its cluster."""
    chosen = {}
    for assignment in filter(None, condition.split(",")):
        name, equals, value = assignment.partition("=")
        if not equals:
            expected = "choose its rows by values of columns, as RUN:share=0.05"
            raise LabError(f"{folder} holds tables of an experiment; {expected}, got {assignment!r}")
        chosen[name.strip()] = value.strip()
    step = chosen.pop("step", "")
    metas = [read_meta(record) for record in records_with(folder, step=step)]
    kinds = sorted({(meta["experiment"], meta["step"]) for meta in metas})
    if len(kinds) != 1:
        there = ", ".join(f"{name} (step={step})" for name, step in kinds) or "no table"
        raise LabError(f"{folder} holds {there}; choose a step: RUN:step=...")
    [(experiment, step)], form = kinds, metas[0]["table"]
    rows: Frame = read_table(folder, experiment, step)
    for name, value in chosen.items():
        if name not in rows:
            raise LabError(f"{folder}: no column {name!r}; there are: {', '.join(map(str, rows.columns))}")
        rows = rows[[_same(cell, value) for cell in rows[name]]]
    cluster = rows["model"].astype(str) + "/" + rows["seed"].astype(str) + "/" + rows[form["cluster"]].astype(str)
    rows = rows.assign(cluster=cluster, item_id=cluster + "/" + rows[form["unit"]].astype(str), question="", answer="", pred="")
    parameters = [name for name in metas[0]["parameters"] if name not in UNSHARED and name in rows]
    if rows.empty or rows["item_id"].duplicated().any():
        differing = [name for name in parameters if rows[name].nunique() > 1]
        hint = f"choose one, as RUN:{differing[0]}=VALUE" if differing else f"nothing is {condition!r}"
        raise LabError(f"{folder}: its cells differ in {', '.join(differing) or 'nothing'}; {hint}")
    about = {name: str(rows[name].iloc[0]) for name in parameters} | {"experiment": experiment, "step": step}
    lower = frozenset(filter(less_is_better, form["measures"]))
    name = f"{folder.name}:{condition}" if condition else folder.name
    return Log(name, "this lab's tables", rows, tuple(form["measures"]), about, clustered=True, lower=lower)


def _same(cell: object, value: str) -> bool:
    try:
        return float(str(cell)) == float(value)
    except ValueError:
        return str(cell) == value


def _chosen(rows: Frame, column: str, wanted: str, folder: Path) -> Frame:
    kept = rows[rows[column] == wanted]
    if not len(kept):
        raise LabError(f"{folder}: no rows of the {column} {wanted!r}; there are: {', '.join(sorted(set(rows[column])))}")
    return kept


def _log(name: str, rows: Frame) -> Log:
    values_of = {column: rows[column].fillna("").drop_duplicates() for column in ABOUT if column in rows}
    about = {column: ", ".join(filter(None, map(str, values))) for column, values in values_of.items()}
    metrics = tuple(column for column in METRICS if column in rows and rows[column].notna().any())
    costs = tuple(column for column in COSTS if column in rows)
    return Log(name, "this lab", rows, metrics, {column: words for column, words in about.items() if words}, costs, clustered=True)


def _suite(rows: Frame, full: bool = False) -> Frame:
    """The name of each row's suite, with its profile and settings in brackets; the default profile only where `full`."""
    columns: Frame = rows[["suite", "profile", "suite_overrides"]].fillna("")
    columns = columns if full else columns.replace({"profile": {"default": ""}})
    return pd.Series([condition_name(*row) for row in columns.itertuples(index=False)], index=rows.index)


def _label(preset: str, encoder: str, overrides: str, suite: str, worlds: str, regime: str) -> str:
    name = condition_name(preset, (encoder or "").replace("own", ""), (overrides or "").replace(";", ", "))
    return f"{name}@{condition_name(suite, (worlds or '').replace(';', ', '))}/{regime}"


def _matches(label: str, condition: str) -> bool:
    name, _, at = label.partition("@")
    wanted, _, where = condition.partition("@")
    named = wanted in (name, name.split("/", 1)[-1]) or fnmatch(name, wanted)
    return named and (not where or where in (at, at.rpartition("/")[0]) or fnmatch(at, where))

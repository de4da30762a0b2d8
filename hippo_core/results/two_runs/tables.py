"""A run of an experiment whose rows are no answers, as a log: a row a unit within its cluster."""

from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.results.frames import Frame
from hippo_core.results.records import read_meta, read_table, records_with
from hippo_core.results.two_runs.logs import Log, less_is_better

UNSHARED = ("run_id", "record_dir", "threads", "dry_run", "step")  # parameters that two runs need not share


def read(folder: Path, condition: str = "") -> Log:
    """The rows of one experiment's step. `condition`: values of columns that choose among them, as `share=0.05,step=first`."""
    chosen = dict(_assigned(folder, part) for part in filter(None, condition.split(",")))
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
    seeds = rows["model"].astype(str) + "/" + rows["seed"].astype(str)
    cluster = seeds + "/" + rows[form["cluster"]].astype(str)
    rows = rows.assign(cluster=cluster, item_id=cluster + "/" + rows[form["unit"]].astype(str), question="", answer="", pred="")
    if rows.empty or rows["item_id"].duplicated().any():
        differing = [name for name in metas[0]["parameters"] if name not in UNSHARED and name in rows and rows[name].nunique() > 1]
        hint = f"choose one, as RUN:{differing[0]}=VALUE" if differing else f"nothing is {condition!r}"
        raise LabError(f"{folder}: its cells differ in {', '.join(differing) or 'nothing'}; {hint}")
    about = {name: str(rows[name].iloc[0]) for name in metas[0]["parameters"] if name not in UNSHARED and name in rows}
    name = f"{folder.name}:{condition}" if condition else folder.name
    about |= {"experiment": experiment, "step": step}
    lower = frozenset(filter(less_is_better, form["measures"]))
    return Log(name, "this lab's tables", rows, tuple(form["measures"]), about, clustered=True, lower=lower)


def _assigned(folder: Path, part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not equals:
        raise LabError(f"{folder} holds tables of an experiment; choose its rows by values of columns, as RUN:share=0.05, got {part!r}")
    return name.strip(), value.strip()


def _same(cell: object, value: str) -> bool:
    try:
        return float(str(cell)) == float(value)
    except ValueError:
        return str(cell) == value

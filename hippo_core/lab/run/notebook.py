"""What the first and the last line of an experiment's notebook call: `begin` checks and writes down, `finish` keeps the results.

`begin` resolves the parameters and writes them, the versions and the checksums into the record *before* anything runs. Under the grid the
runner adds the executed notebook and seals the record; in Jupyter, or under plain papermill, `finish` seals it without one.
"""

import ast
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError, unknown
from hippo_core.files import remove_made, root, write_bytes
from hippo_core.lab.run import fingerprints, record_files
from hippo_core.lab.run.cells import Cell, cells_of, command, require_threads
from hippo_core.protocols.base.cell import RunningCell
from hippo_core.protocols.base.experiment import Experiment, load_experiment
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.results import records
from hippo_core.results.records.origin import git_sha, versions
from hippo_core.results.records.table import Table
from hippo_core.source_code import parsed
from hippo_core.spoken import number_of

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.suites.types import World

SCRATCH = "scratch"  # the run of trials by hand, whose records are replaced


def begin(name: str, namespace: Mapping[str, Any]) -> RunningCell:
    """Check the parameters of this notebook (names and types, in `namespace`: pass `globals()`) and write down what is going to run.

    Args:
        name: of the experiment, or its module path.
    """
    started = time.monotonic()
    experiment = load_experiment(name)
    experiment.forget()
    fingerprints.forget()
    known = experiment.parameters.model_fields
    refuse_unknown(namespace.get("In", ()), set(known))
    requested = experiment.check({name: namespace[name] for name in known if name in namespace}, experiment.phase)
    require_threads(requested.threads)
    *before, cell = cells_of(experiment.plan(requested))
    parameters = experiment.parameters(**cell.parameters)
    _make_needed(before, cell, by_hand=not parameters.record_dir)
    if parameters.record_dir:
        record = record_files.claimed(root() / parameters.record_dir)
    else:
        record = cell.record
        if parameters.run_id == SCRATCH:
            remove_made(record)
        record_files.clear(record)
    records.begin_record(record, *describe_run(cell, parameters, experiment.table(experiment.step_of(parameters))))
    opened = experiment.cell(parameters, record, started, cell.sources)
    opened.begun()
    return opened


def _make_needed(before: Sequence[Cell], cell: Cell, by_hand: bool) -> None:
    """Run the cells of experiments that this one rests on, each in a process of its own, where their records are not there; under a runner,
    which does that itself, LabError. The nearest is run, and brings those behind it."""
    needed = [other for other in before if other.id in cell.needed and other.experiment and not records.is_complete(other.record)]
    for other in needed:
        why = f"'{cell.label}' needs the record of '{other.label}', which is not finished"
        if not by_hand:
            raise LabError(f"{why}; run it first: {command(other)}")
        print(f"{why}; it is made now, in a process of its own: {command(other)}", flush=True)
        words = ["-m", "hippo_core", *shlex.split(command(other))[1:]]
        plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
        ran = subprocess.run([sys.executable, *words], cwd=root(), env=plain, capture_output=True, text=True, check=False)
        print(ran.stdout.strip(), flush=True)
        if ran.returncode:
            raise LabError(f"'{other.label}' failed: {(ran.stderr or ran.stdout).strip().splitlines()[-1]}")


def finish(open_cell: RunningCell, rows: "pd.DataFrame") -> dict[str, Any]:
    """Write rows and metrics, glue the metrics as scraps, and return them. Without a runner the record is sealed here.

    The rows are first checked as the experiment's table says: LabError where a column is missing or nobody declared it.
    """
    import scrapbook

    experiment, parameters = _experiment(open_cell), open_cell.parameters
    table = experiment.table(experiment.step_of(parameters))
    rows = table.arranged(rows, open_cell.columns())
    added: dict[str, Any] = {"device": open_cell.device, **open_cell.origin(), **table.check(open_cell, rows)}
    if open_cell.warnings:
        added["warnings"] = open_cell.warnings
    seconds = time.monotonic() - open_cell.started
    metrics = table.metrics(open_cell, rows, seconds) if table.metrics else table.means(rows)
    for path, content in experiment.files(parameters, open_cell.record, rows).items():
        write_bytes(open_cell.record / path, content)
    records.finish_record(open_cell.record, rows, metrics, {"seconds": round(seconds, 3), **added}, table.file)
    for name in table.scraps:
        scrapbook.glue(name, metrics[name])
    if not parameters.record_dir:
        records.seal(open_cell.record)
    return metrics


def sentence(open_cell: RunningCell, metrics: dict[str, Any]) -> str:
    """The result of a cell in one sentence, from its numbers."""
    return _experiment(open_cell).sentence(open_cell.parameters, metrics)


def figure(open_cell: RunningCell, rows: "pd.DataFrame") -> bytes:
    """The result of a cell as a picture (PNG); LabError where its experiment draws none."""
    experiment = _experiment(open_cell)
    if not experiment.figure:
        raise LabError(f"experiment {experiment.name} draws no figure; give it one: figure=...")
    return experiment.figure(open_cell.parameters, rows)


def describe_worlds(worlds: "Sequence[World]") -> str:
    """How many facts and questions some worlds have, and the first fact."""
    facts, questions = sum(len(world.facts) for world in worlds), sum(len(world.items) for world in worlds)
    counted = number_of(len(worlds), "world"), number_of(facts, "fact"), number_of(questions, "question")
    return f"{', '.join(counted)}; the first fact told: {worlds[0].facts[0].text}"


def preview(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Of rows that answer: the question, what was recalled for it with its score, the answer, the right answer; of others all columns in
    which anything stands."""
    if "recalled_texts" not in rows:
        return rows.dropna(axis="columns", how="all")
    import pandas as pd

    recalled = rows["recalled_texts"].map(lambda texts: "; ".join(_with_score(*trace) for trace in json.loads(texts or "[]")))
    columns = {"question": rows["question"], "recalled (score)": recalled, "given": rows["pred"], "right answer": rows["answer"]}
    return pd.DataFrame({**columns, **{name: rows[name] for name in ("score", "found", "rung")}})


def _with_score(text: str, score: float | None) -> str:
    return text if score is None else f"{text} ({score:.3g})"


def _experiment(open_cell: RunningCell) -> Experiment:
    return load_experiment(records.read_meta(open_cell.record)["experiment"])


def refuse_unknown(inputs: Sequence[str], known: Collection[str]) -> None:
    """LabError where a notebook was given a parameter that it does not have, by papermill, which only warns, or in its parameters cell,
    where Python takes any name.

    `inputs` are the sources of the cells that have run, as IPython keeps them in `In`. The parameters cell is the last that assigns most
    of the names; what was given before it was run does not count.
    """
    cells = [(source, _assigned(source)) for source in inputs]
    most = [number for number, (_, names) in enumerate(cells) if 2 * len(names & set(known)) > len(known)]
    cell = cells[most[-1]][1] if most else set[str]()
    injected = [names for source, names in cells[most[-1] if most else 0 :] if source.startswith(INJECTED)]
    names = cell.union(*injected)
    if stranger := min(names - set(known), default=None):
        near = get_close_matches(stranger, known, n=3)
        raise LabError(f"{unknown('parameter', stranger, known)}" + (f"; nearest: {', '.join(near)}" if near else ""))


INJECTED = "# Parameters\n"  # how the cell begins that papermill adds


def _assigned(source: str) -> set[str]:
    """The lower-case names to which a cell assigns plain literals."""
    try:
        lines = parsed(source).body
    except SyntaxError:  # a line for IPython, or one that failed
        return set()
    names: set[str] = set()
    for line in lines:
        if isinstance(line, ast.Assign | ast.AnnAssign):
            targets = line.targets if isinstance(line, ast.Assign) else [line.target]
            with suppress(ValueError):  # it is no literal
                ast.literal_eval(line.value or ast.Constant(None))
                names |= {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {name for name in names if name == name.lower()}


def describe_run(cell: Cell, parameters: Parameters, table: Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of `config_snapshot.yaml` and of `meta.json`."""
    config = {"parameters": parameters.values(), **(cell.plan.config if cell.plan else {})}
    meta = {
        "git_sha": git_sha(),
        "config_hash": fingerprints.digest(config),
        "cell": cell.id,
        "phase": cell.phase,
        "experiment": cell.experiment,
        "step": table.step,
        "table": table.described(),
        "parameters": parameters.model_dump(exclude={"record_dir"}),
        "needs": cell.needs,
        "threads": parameters.threads,
        "versions": versions(),
        "checksums": {"notebook": fingerprints.notebook(cell.notebook), **cell.checksums},
    }
    return config, meta

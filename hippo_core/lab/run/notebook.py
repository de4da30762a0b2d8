"""What the first and the last line of an experiment's notebook call: `begin` checks and writes down, `finish` keeps the results.

`begin` resolves the parameters and writes them, the versions and the checksums into the record *before* anything runs. Under the grid the
runner adds the executed notebook and seals the record; in Jupyter, or under plain papermill, `finish` seals it without one.
"""

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.experiments.base import Experiment, load_experiment
from hippo_core.experiments.parameters import Resolved, check, forget
from hippo_core.files import LabError, root, unknown
from hippo_core.lab.grid import summary
from hippo_core.lab.run import fingerprints, record_files
from hippo_core.lab.run.cells import Cell, cells_of
from hippo_core.lab.run.preflight import require_threads
from hippo_core.lab.run.provenance import describe_run
from hippo_core.results import records
from hippo_core.source_code import parsed
from hippo_core.suites.datasets import build
from hippo_core.suites.folder import cut_short, is_own
from hippo_core.suites.types import Split, Suite, World

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.methods.base import Method
    from hippo_core.models.language_model import LanguageModel

SCRATCH = "scratch"  # the run of trials by hand, whose records are replaced
STORE = "store"  # the folder of a record that holds what was taught


@dataclass(frozen=True)
class OpenCell:
    """A cell that runs in this notebook: its parameters, what they stand for, and the folder its record grows in.

    `source` is the folder of the store that a cell of a memory reads, that of the cell which taught or replayed it, or the file of the
    user's own. `warnings` are
    printed when they are noticed, and kept in the record.
    """

    cell: Cell
    experiment: Experiment
    parameters: Any
    resolved: Resolved
    record: Path
    started: float
    source: Path | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def suite(self) -> Suite:
        """The suite that is asked."""
        return self.resolved.suite

    @property
    def store(self) -> Path:
        """The folder for the store that this cell writes, a part of its record."""
        return self.record / STORE

    def worlds(self, split: Split | None = None) -> list[World]:
        """The worlds of this cell, or of another split of its data set, from disk (built first where they are not there).

        A folder of the user's own has validation worlds or none.
        """
        parameters = self.parameters
        if split == "val" and split not in build.stored_splits(parameters.suite):
            return []
        return build.load_dataset(
            parameters.suite, parameters.profile, parameters.items, parameters.seed, split or parameters.split, *self._drawn_with()
        )

    def dataset(self) -> dict[str, str]:
        """The checksums of the files that the worlds came from."""
        parameters = self.parameters
        folder = build.dataset_folder(parameters.suite, parameters.profile, parameters.items, parameters.seed, *self._drawn_with())
        return json.loads((folder / "checksums.json").read_text(encoding="utf-8"))

    def _drawn_with(self) -> tuple[int, dict[str, Any]]:
        return self.resolved.spec.context_limit, self.resolved.suite_overrides

    @cached_property
    def language_model(self) -> "LanguageModel":
        """The model of this cell, loaded for its number of threads."""
        from hippo_core.models.load import load
        from hippo_core.models.prompt import too_long

        lm = load(self.resolved.spec, threads=self.parameters.threads)
        texts = [fact.text for world in self.worlds() for fact in world.facts]
        if long := too_long(lm, texts, self.resolved.preset.settings.decoding, self.suite.answer_budget):
            of = f"{len(long):,} of {len(texts):,} facts are too long for the {lm.spec.context_limit} tokens of {lm.spec.name}"
            self.warn(f"{of}, with a question and an answer: no prompt shows them and no memory keeps them; split them")
        return lm

    def warn(self, message: str) -> None:
        """Print a warning and keep it for the record."""
        self.warnings.append(message)
        print(f"warning: {message}")

    @property
    def device(self) -> str:
        """Where its model computes; the CPU where nothing has loaded one."""
        return str(self.language_model.device) if "language_model" in vars(self) else "cpu"

    @cached_property
    def method(self) -> "Method":
        """The method of this cell, bound to its model."""
        return self.resolved.preset.method(self.language_model, self.resolved.preset.settings)


def begin(name: str, namespace: Mapping[str, Any]) -> OpenCell:
    """Check the parameters of this notebook (names and types, in `namespace`: pass `globals()`) and write down what is going to run.

    Args:
        name: of the experiment, or its module path.
    """
    started = time.monotonic()
    experiment = load_experiment(name)
    forget()
    fingerprints.forget()
    known = experiment.parameters.model_fields
    refuse_unknown(namespace.get("In", ()), set(known))
    requested = check({name: namespace[name] for name in known if name in namespace}, experiment.phase, experiment.parameters)
    require_threads(requested.parameters.threads)
    *_, cell = chain = cells_of(experiment, requested)
    resolved: Any = cell.resolved
    parameters = resolved.parameters
    if cell.source and not records.is_complete(cell.source):
        _make_source(chain[-2], cell, by_hand=not parameters.record_dir)
    record = _record_path(parameters, cell)
    config, meta = describe_run(cell, resolved)
    records.begin_record(record, config, meta)
    source = cell.source / STORE if cell.source else experiment.reads(resolved)
    opened = OpenCell(cell, experiment, parameters, resolved, record, started, source)
    if is_own(parameters.suite) and not parameters.dry_run and (message := cut_short(parameters.suite, parameters.split, parameters.items)):
        opened.warn(message)
    return opened


def _make_source(before: Cell, cell: Cell, by_hand: bool) -> None:
    """Run the cell that this one rests on, in a process of its own; under a runner, which does that itself, LabError."""
    why = f"'{cell.label}' needs the store of '{before.label}', which has no finished record"
    if not by_hand:
        raise LabError(f"{why}; run it first: {summary.command(before)}")
    print(f"{why}; it is made now, in a process of its own: {summary.command(before)}", flush=True)
    words = ["-m", "hippo_core", *shlex.split(summary.command(before))[1:]]
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
    ran = subprocess.run([sys.executable, *words], cwd=root(), env=plain, capture_output=True, text=True, check=False)
    print(ran.stdout.strip(), flush=True)
    if ran.returncode:
        raise LabError(f"'{before.label}' failed: {(ran.stderr or ran.stdout).strip().splitlines()[-1]}")


def finish(open_cell: OpenCell, rows: "pd.DataFrame") -> dict[str, Any]:
    """Write rows and metrics, glue the metrics as scraps, and return them. Without a runner the record is sealed here.

    Answers are first scored again against the suite's files: LabError where they were shifted or a score is not the strict one. Rows of
    a cell that teaches or replays are no answers; what they say goes into the metrics as `gates` and `telemetry`.
    """
    import scrapbook

    parameters = open_cell.parameters
    added: dict[str, Any] = {"device": open_cell.device, "dataset": open_cell.dataset()}
    if open_cell.warnings:
        added["warnings"] = open_cell.warnings
    if parameters.stage == "test":
        added["stages"] = _checked_stages(open_cell, rows)
    seconds = time.monotonic() - open_cell.started
    cell = parameters.suite, parameters.n, parameters.seed, parameters.preset
    metrics = records.build_metrics(rows, *cell, seconds, parameters.stage, _algorithm(open_cell))
    records.finish_record(open_cell.record, rows, metrics, {"seconds": round(seconds, 3), **added}, parameters.stage)
    for name in records.SCRAPS[parameters.stage]:
        scrapbook.glue(name, metrics[name])
    if not parameters.record_dir:
        records.seal(open_cell.record)
    return metrics


def _algorithm(open_cell: OpenCell) -> str:
    """What a memory is called; empty for another method."""
    name = getattr(open_cell.resolved.preset.method, "algorithm", None)
    return name() if name else ""


def _checked_stages(open_cell: OpenCell, rows: "pd.DataFrame") -> list[str]:
    from hippo_core.results.scores import check_rows

    check_rows(open_cell.suite, open_cell.worlds(), rows)
    return sorted(rows["stage"].unique())


def sentence(open_cell: OpenCell, metrics: dict[str, Any]) -> str:
    """The result of a cell in one sentence, from its numbers."""
    return open_cell.experiment.sentence(open_cell.parameters, metrics)


def glance(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Of rows that answer: the question, what was recalled for it with its score, the answer, the right answer; of others all columns."""
    if "recalled_texts" not in rows:
        return rows
    import pandas as pd

    recalled = rows["recalled_texts"].map(lambda texts: "; ".join(_with_score(*one) for one in json.loads(texts or "[]")))
    columns = {"question": rows["question"], "recalled (score)": recalled, "given": rows["pred"], "right answer": rows["answer"]}
    return pd.DataFrame({**columns, **{name: rows[name] for name in ("score", "found", "rung")}})


def _with_score(text: str, score: float | None) -> str:
    return text if score is None else f"{text} ({score:.3g})"


def figure(open_cell: OpenCell, rows: "pd.DataFrame") -> bytes:
    """The result of a cell as a picture (PNG)."""
    return open_cell.experiment.figure(open_cell.parameters, rows)


def refuse_unknown(inputs: Sequence[str], known: Collection[str]) -> None:
    """LabError where a notebook was told a parameter that it does not have, by papermill, which only warns, or in its parameters cell,
    where Python takes any name.

    `inputs` are the sources of the cells that have run, as IPython keeps them in `In`. The parameters cell is the last that assigns most
    of the names; what was told before it was run does not count.
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
        if isinstance(line, ast.Assign | ast.AnnAssign) and _is_literal(line.value):
            targets = line.targets if isinstance(line, ast.Assign) else [line.target]
            names |= {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {name for name in names if name == name.lower()}


def _is_literal(value: ast.expr | None) -> bool:
    try:
        ast.literal_eval(value or ast.Constant(None))
    except ValueError:
        return False
    return True


def _record_path(parameters: Any, cell: Cell) -> Path:
    """Where the record grows: the runner's folder, else its own place, free of an earlier record."""
    if parameters.record_dir:
        return record_files.claimed(root() / parameters.record_dir)
    if parameters.run_id == SCRATCH and cell.record.exists():
        shutil.rmtree(cell.record)
    record_files.clear(cell.record)
    return cell.record

"""What the first and the last line of an experiment's notebook call: `begin` checks and writes down, `finish` keeps the results.

`begin` resolves the parameters and writes them, the versions and the checksums into the record *before* anything runs. Under the grid the
runner adds the executed notebook and seals the record; in Jupyter, or under plain papermill, `finish` seals it without one.
"""

import ast
import json
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hippo_core.conditions import Preset
from hippo_core.files import root, unknown
from hippo_core.memory.settings import MemoryPreset
from hippo_core.results import records
from hippo_core.suites.datasets import build
from hippo_core.suites.folder import cut_short, is_own
from hippo_core.suites.types import Split, Suite, World

from . import closing, fingerprints, runner_files
from .cells import FORMS, Cell
from .materials import require_threads
from .parameters import MemoryParameters, Parameters, Resolved, check, forget, resolve
from .provenance import describe_run
from .syntax import parsed
from .taught import STORE, canonical, taught_store, with_needs

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.models.language_model import LanguageModel

SCRATCH = "scratch"  # the run of trials by hand, whose records are replaced


@dataclass(frozen=True)
class OpenCell:
    """A cell that runs in this notebook: its parameters, what they stand for, and the folder its record grows in.

    `source` is the folder of the store that a cell of a memory reads: that of the cell which taught or replayed it. `warnings` are
    printed when they are noticed, and kept in the record.
    """

    cell: Cell
    parameters: Parameters
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
    def preset(self) -> Preset | MemoryPreset:
        """What the model is given for an item."""
        return self.resolved.preset

    @property
    def store(self) -> Path:
        """The folder for the store that this cell writes, a part of its record."""
        return self.record / STORE

    def worlds(self, split: Split | None = None) -> list[World]:
        """The worlds of this cell, or of another split of its data set, from disk (built first where they are not there).

        A folder of the user's own has validation worlds or none.
        """
        told = self.parameters
        if split == "val" and split not in build.kept_splits(told.suite):
            return []
        return build.load_dataset(told.suite, told.profile, told.items, told.seed, split or told.split, *self._drawn_with())

    def dataset(self) -> dict[str, str]:
        """The checksums of the files that the worlds came from."""
        told = self.parameters
        folder = build.dataset_folder(told.suite, told.profile, told.items, told.seed, *self._drawn_with())
        return json.loads((folder / "checksums.json").read_text(encoding="utf-8"))

    def _drawn_with(self) -> tuple[int, dict[str, Any]]:
        return self.resolved.spec.context_limit, self.resolved.suite_overrides

    def language_model(self) -> "LanguageModel":
        """The model of this cell, loaded for its number of threads."""
        from hippo_core.models.load import load
        from hippo_core.models.prompt import too_long

        lm = load(self.resolved.spec, threads=self.parameters.threads)
        texts = [fact.text for world in self.worlds() for fact in world.facts]
        if long := too_long(lm, texts, self.preset.decoding, self.suite.answer_budget):
            of = f"{len(long):,} of {len(texts):,} facts are too long for the {lm.spec.context_limit} tokens of {lm.spec.name}"
            self.warn(f"{of}, with a question and an answer: no prompt shows them and no memory keeps them; split them")
        return lm

    def warn(self, message: str) -> None:
        """Print a warning and keep it for the record."""
        self.warnings.append(message)
        print(f"warning: {message}")


def begin(phase: str, namespace: Mapping[str, Any]) -> OpenCell:
    """Check the parameters of this notebook (names and types, in `namespace`: pass `globals()`) and write down what is going to run."""
    started = time.monotonic()
    if phase not in FORMS:
        raise unknown("phase with records", phase, FORMS)
    forget()
    fingerprints.forget()
    known = FORMS[phase].model_fields
    refuse_unknown(namespace.get("In", ()), set(known))
    parameters, _ = check({name: namespace[name] for name in known if name in namespace}, phase, FORMS[phase])
    if isinstance(parameters, MemoryParameters) and parameters.mode != "test":
        parameters = canonical(parameters, parameters.mode)
    require_threads(parameters.threads)
    cells = with_needs(parameters)
    source, record = taught_store(cells), _place(parameters, cells[-1])
    config, meta = describe_run(cells[-1], parameters, resolve(parameters))
    records.begin_record(record, config, meta)
    opened = OpenCell(cells[-1], parameters, resolve(parameters), record, started, source)
    if is_own(parameters.suite) and not parameters.dry_run and (message := cut_short(parameters.suite, parameters.split, parameters.items)):
        opened.warn(message)
    return opened


def finish(open_cell: OpenCell, rows: "pd.DataFrame", device: str = "cpu") -> dict[str, Any]:
    """Write rows and metrics, glue the metrics as scraps, and return them. Without a runner the record is sealed here.

    Answers are first scored again against the suite's files: LabError where they were shifted or a score is not the strict one. Rows of
    a cell that teaches or replays are no answers; what they say goes into the metrics as `telemetry`.
    """
    import scrapbook

    told = open_cell.parameters
    added: dict[str, Any] = {"device": device, "dataset": open_cell.dataset()}
    if open_cell.warnings:
        added["warnings"] = open_cell.warnings
    if told.mode == "test":
        rows = _with_store(open_cell, rows)
        added["stages"] = _checked_stages(open_cell, rows)
    seconds = time.monotonic() - open_cell.started
    metrics = records.build_metrics(rows, told.suite, told.n, told.seed, told.preset, seconds, told.mode)
    records.finish_record(open_cell.record, rows, metrics, {"seconds": round(seconds, 3), **added}, told.mode)
    for name in records.SCRAPS[told.mode]:
        scrapbook.glue(name, metrics[name])
    if not told.record_dir:
        records.seal(open_cell.record)
    return metrics


def _checked_stages(open_cell: OpenCell, rows: "pd.DataFrame") -> list[str]:
    from hippo_core.results.scores import check_rows

    check_rows(open_cell.suite, open_cell.worlds(), rows)
    return sorted(rows["stage"].unique())


def _with_store(open_cell: OpenCell, rows: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of a memory's test with what is known of its store: whether the item's world has a trace there; after sleep, whether
    anything was replayed, and the share of the cycles due that did not run."""
    if open_cell.source is None:
        return rows
    rows = rows.assign(store_written=(rows["store_size"] > 0).astype(float))
    if open_cell.parameters.regime != "after_sleep":
        return rows
    found, due = records.read_metrics(open_cell.source.parent)["telemetry"], cast(MemoryPreset, open_cell.preset).replay.cycles
    return rows.assign(replayed=float(found["items"] > 0), replay_cycles_missing=max(0, due - found["cycles"]) / due)


def sentence(open_cell: OpenCell, metrics: dict[str, Any]) -> str:
    """The result of a cell in one sentence, from its numbers."""
    return closing.sentence(open_cell.parameters, metrics)


def figure(open_cell: OpenCell, rows: "pd.DataFrame") -> bytes:
    """The picture (PNG) of a cell: accuracy by rung of the cue, or by kind of question where the suite has one rung only; of a cell
    that teaches or replays, how salience is spread."""
    from hippo_core.results.figures import plots, salience

    told = open_cell.parameters
    if told.mode != "test":
        return plots.png(salience.FIGURES[told.mode](rows))
    by = "rung" if len(set(rows["rung"])) > 1 else "kind"
    title = f"{told.preset.split('/')[-1]} answers {rows['score'].mean():.0%} of {rows['score'].count()} {told.suite} questions right"
    return plots.png(plots.accuracy_by(rows.assign(preset=told.preset, regime=told.regime), by, title=title))


def refuse_unknown(inputs: Sequence[str], known: Collection[str]) -> None:
    """LabError where papermill injected a parameter that the notebook does not have: papermill itself only warns.

    `inputs` are the sources of the cells that have run, as IPython keeps them in `In`.
    """
    lines = [line for source in inputs if source.startswith("# Parameters\n") for line in parsed(source).body]
    names = {target.id for line in lines if isinstance(line, ast.Assign) for target in line.targets if isinstance(target, ast.Name)}
    if stranger := min(names - set(known), default=None):
        raise unknown("parameter", stranger, known)


def _place(parameters: Parameters, cell: Cell) -> Path:
    """Where the record grows: the runner's folder, else its own place, free of an earlier record."""
    if parameters.record_dir:
        return runner_files.claimed(root() / parameters.record_dir)
    if parameters.run_id == SCRATCH and cell.record.exists():
        shutil.rmtree(cell.record)
    runner_files.clear(cell.record)
    return cell.record

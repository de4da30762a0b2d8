"""The last lines of a grid: what was done, what failed and how to run it alone, how the criteria stand, where the report is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hippo_core.files import root
from hippo_core.lab.grid.progress.status import duration
from hippo_core.lab.run.cells import Cell, command
from hippo_core.lab.run.execute import Outcome
from hippo_core.lab.run.record_files import short
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.results.records import is_complete, read_meta, read_metrics
from hippo_core.results.verdicts import by_group, claims_by_rival, counts_in_words, read_invalid, read_verdicts


def summary_lines(run_id: str, outcomes: Sequence[Outcome], skipped: int, seconds: float) -> list[str]:
    """The lines that a grid ends with."""
    failed = sum(outcome.state == "failed" for outcome in outcomes)
    return [
        f"cells:    {len(outcomes) - failed} done, {skipped} skipped, {failed} failed",
        f"time:     {duration(seconds)}",
        *_criteria(run_id),
        f"records:  executed/{run_id}",
        f"report:   {report_page(run_id)}",
    ]


def _criteria(run_id: str) -> list[str]:
    """A line for each group of criteria, and what the claims that were judged are compared with."""
    if not (verdicts := criteria(run_id)):
        written = criteria_file(run_id).is_file()
        return [f"criteria: {'none is about what was run; the report has the scores' if written else 'none judged yet'}"]
    lines = [f"{name}: {counts_in_words(counts)}" for name, counts in by_group(verdicts).items()]
    lines += [by_rival] if (by_rival := claims_by_rival(verdicts)) else []
    return [f"{' ' if number else 'criteria:':<9} {line}" for number, line in enumerate(lines)]


def criteria(run_id: str) -> list[dict[str, Any]]:
    """The verdict on each criterion of a run's report; empty where there is no report."""
    path = criteria_file(run_id)
    return read_verdicts(path) if path.is_file() else []


def invalid(run_id: str) -> list[str]:
    """The clauses of the contract of a meaningful run that its cells break, as its report says."""
    path = criteria_file(run_id)
    return read_invalid(path) if path.is_file() else []


def without_sleep(cells: Sequence[Cell]) -> list[str]:
    """The tests of memories after a sleep whose records have no score after a replay: a run does not end well with these."""
    lines = []
    for cell in cells:
        about = tuple(cell.parameters.get(name) for name in ("regime", "step"))
        if about != ("after_sleep", "test") or not cell.parameters["preset"].startswith("memory/") or not is_complete(cell.record):
            continue  # what failed has its own line
        scores = read_metrics(cell.record)["metrics"][cell.parameters["suite"]]
        if all(value is None for name, value in scores.items() if name.startswith("post_")):
            lines.append(f"no score after a replay: {cell.label} ({cell.id}): nothing was replayed, or nothing was scored")
    return lines


def criteria_file(run_id: str) -> Path:
    """Where the report of a run keeps its verdicts."""
    return root() / "reports" / run_id / "criteria.json"


def report_page(run_id: str) -> str:
    """The page to open."""
    folder = root() / "reports" / run_id
    pages = [folder / "index.html", *sorted(folder.glob("*.html")), folder / "summary.md"]
    return next((short(page) for page in pages if page.is_file()), f"none at reports/{run_id}")


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    """For each failed cell: which, the error's last line, its notebook, and the command that runs it alone."""
    lines = []
    for outcome in outcomes:
        if outcome.state == "failed":
            lines += [f"failed: {outcome.cell.label} ({outcome.cell.id})", f"  {outcome.message}"]
            lines += [f"  notebook: {outcome.notebook}"] if outcome.notebook else []
            lines += [f"  alone:    {command(outcome.cell)}"]
    return lines


def warnings(outcomes: Sequence[Outcome]) -> list[str]:
    """What the finished cells warn of, each warning once."""
    done = [outcome.cell for outcome in outcomes if outcome.state == "done"]
    return list(dict.fromkeys(f"warning: {message}" for cell in done for message in read_meta(cell.record).get("warnings", ())))


def result(cell: Cell) -> str:
    """The result of a finished cell in one line."""
    if not cell.experiment:
        return cell.label
    experiment = load_experiment(cell.experiment)
    return experiment.sentence(experiment.parameters(**cell.parameters), read_metrics(cell.record))

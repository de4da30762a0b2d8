"""What the widget shows: a status as a piece of HTML, in the colours of the notebook's own theme."""

from functools import cache
from pathlib import Path
from typing import Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hippo_core.lab.grid.progress.eta import duration
from hippo_core.lab.grid.progress.screen import by_length
from hippo_core.lab.grid.progress.status import Status

Stage = Literal["waiting", "starting", "running", "stopping", "ended", "stopped", "gone", "idle", "refused"]
WORDS = {"waiting": "no grid yet", "gone": "runner gone", "idle": "nothing to do", "refused": "not begun"}
HERE = Path(__file__).parent
MANY = 4  # with more cells running than this, each shows one line of its output
LINES, ENDED, FAILED = 5, 4, 10  # lines of a cell's output, ended and failed cells that are shown


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["duration"] = duration
    return environment


def head(run_id: str, stage: Stage, failed: int) -> str:
    """The name of the run and its stage, with the style of all. `failed`: cells."""
    style = Markup((HERE / "view.css").read_text(encoding="utf-8"))
    bad = stage == "ended" and failed
    style_class, label = ("ended failures", f"ended, {failed} failed") if bad else (stage, WORDS.get(stage, stage))
    text = Markup('<style>{}</style><div class="hippo-grid"><b>{}</b><span class="stage {}">{}</span></div>')
    return str(text.format(style, run_id, style_class, label))


def body(stage: Stage, status: Status | None, note: str = "", output: str = "") -> str:
    """All below it. `note` says what a person can do, `output` is what a grid printed that did not begin."""
    running = by_length(status) if status else []
    lines = 1 if len(running) > MANY else LINES
    words = {"status": status, "note": note, "output": output, "headline": headline(stage, status), "running": running}
    words["works"] = stage in ("running", "stopping")
    counts = {"lines": lines, "ended": ENDED, "shown": FAILED, "shares": _shares(status) if status else {}}
    return _environment().get_template("view.html.j2").render(**words, **counts)


def headline(stage: Stage, status: Status | None) -> str:
    """What a person wants to know first."""
    if status is None:
        return {"waiting": "Waiting for a grid", "idle": "Nothing to do", "refused": "The grid did not begin"}.get(stage, "Starting")
    took = duration(status.updated - status.started)
    if stage not in ("running", "stopping"):
        return f"{WORDS.get(stage, stage).capitalize()} after {took}"
    remaining = status.seconds_left
    return "Stopping" if stage == "stopping" else "Time left not known yet" if remaining is None else f"About {duration(remaining)} left"


def _shares(status: Status) -> dict[str, float]:
    counts = {"done": status.done, "failed": status.failed, "running": len(status.running)}
    return {name: 100 * count / max(1, status.total) for name, count in counts.items() if count}

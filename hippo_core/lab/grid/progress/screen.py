"""How a grid's status looks on a terminal: counts and time, the last cells that ended, those that run and what they say."""

from collections.abc import Iterator

from rich.cells import set_cell_size
from rich.console import Group
from rich.text import Text

from hippo_core.lab.grid.progress.eta import duration
from hippo_core.lab.grid.progress.status import EndedStatus, RunningStatus, Status

SHOWN = 8  # ended cells, and running ones, that are listed
COLOURS = {"done": "green", "failed": "red", "running": "yellow"}


def table(status: Status, shown: int = SHOWN) -> Group:
    """The live table; the last line of what each running cell says stands below it."""
    ended, running = status.last[-shown:] if shown else [], by_length(status)[:SHOWN]
    width = max((len(cell.label) for cell in (*ended, *running)), default=0)
    lines = [Text(headline(status), style="bold")]
    lines += [_row(cell.label, cell.state, cell.seconds, width) for cell in ended]
    for cell in running:
        lines += [_row(cell.label, "running", cell.seconds, width), *output_lines(cell, 1)]
    if more := len(status.running) - len(running):
        lines.append(Text(f"and {more} more running", style="dim"))
    return Group(*lines)


def by_length(status: Status) -> list[RunningStatus]:
    """The running cells, the one that runs longest first."""
    return sorted(status.running, key=lambda cell: -cell.seconds)


def output_lines(cell: RunningStatus, count: int) -> Iterator[Text]:
    """The last lines of a cell, each cut to the width."""
    for line in cell.tail[-count:]:
        yield Text(f"  {line}", style="dim", no_wrap=True, overflow="ellipsis")


def headline(status: Status) -> str:
    """Counts and time in one line."""
    waiting = status.remaining - len(status.running)
    counts = f"{status.done} done, {status.failed} failed, {len(status.running)} running, {waiting} waiting, {status.skipped} skipped"
    elapsed = duration(status.updated - status.started)
    if status.state != "running":
        return f"{counts}; {elapsed}"
    return f"{counts}; {elapsed} so far" + ("" if status.seconds_left is None else f", about {duration(status.seconds_left)} left")


def line(cell: EndedStatus, number: int, total: int, seconds_left: float | None) -> str:
    """What is printed where there is no terminal, when a cell has ended as the `number`-th of `total`."""
    left = f"{total - number} left" if number < total else "nothing left"
    time_left = f", about {duration(seconds_left)}" if number < total and seconds_left is not None else ""
    why = f"  {cell.message}" if cell.message else ""
    return f"[{number}/{total}] {cell.state} {cell.label} {cell.seconds:.1f} s, {left}{time_left}{why}"


def _row(label: str, state: str, seconds: float, width: int) -> Text:
    row = Text.assemble(set_cell_size(label, width), "  ", (f"{state:<7}", COLOURS[state]), f"  {seconds:7.1f}")
    row.no_wrap, row.overflow = True, "ellipsis"
    return row

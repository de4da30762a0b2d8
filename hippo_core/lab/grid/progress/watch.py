"""Watch a grid that runs elsewhere, by its status file: the same live table with a cell's output, or plain lines without a terminal."""

import time
from collections.abc import Iterator

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from hippo_core.errors import LabError
from hippo_core.lab.grid.progress import screen
from hippo_core.lab.grid.progress.status import Status, absent, poll

EVERY = 0.5  # seconds between two looks at the file
LINES = 8  # of the output of one cell


def watch(run_id: str, cell: str = "") -> None:
    """Show how the grid of a run comes along until it ends; on a terminal with the output of the cell that runs longest, or of the first
    whose label holds `cell`. LabError where none runs."""
    status, works = poll(run_id)
    if status is None or not works:
        raise LabError(absent(run_id, status))
    console = Console()
    try:
        last = _draw(status, cell, console) if console.is_terminal else _print(status)
        print(closing(last))
    except KeyboardInterrupt:
        print("no longer watched; the grid goes on")


def follow(status: Status) -> Iterator[Status]:
    """The states of a grid as it writes them; the last is how it ended, or what a runner that was killed has left."""
    works = True
    while works:
        yield status
        time.sleep(EVERY)
        now, works = poll(status.run_id)
        status = now or status
    yield status


def closing(status: Status) -> str:
    """The last line: how the grid ended."""
    if status.state == "running":
        return absent(status.run_id, status)
    return f"{status.run_id} {'has ended' if status.state == 'ended' else 'was stopped'}: {screen.headline(status)}"


def _draw(first: Status, cell: str, console: Console) -> Status:
    now = first
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for now in follow(first):
            live.update(picture(now, cell, console.height), refresh=True)
    return now


def picture(status: Status, cell: str, height: int) -> Group:
    """The live table, as many ended cells as there is room for, and the output of one cell."""
    free_lines = height - 2 * len(status.running) - LINES - 4
    return Group(screen.table(status, max(2, min(screen.SHOWN, free_lines))), *_tail(status, cell))


def _tail(status: Status, cell: str) -> Iterator[Text]:
    shown = next((running for running in screen.by_length(status) if cell in running.label), None)
    if shown or cell:
        yield Text("")
        yield Text(f"output of {shown.label}" if shown else f"no running cell's label holds {cell!r}", style="bold dim")
    if shown:
        yield from screen.output_lines(shown, LINES)


def _print(first: Status) -> Status:
    now, reported = first, first.done + first.failed - len(first.last)
    for now in follow(first):
        for line in news(now, reported):
            print(line, flush=True)
        reported = now.done + now.failed
    return now


def news(status: Status, reported: int) -> list[str]:
    """A line for each cell that has ended since `reported` cells had."""
    ended = status.done + status.failed
    numbered = enumerate(status.last, ended - len(status.last) + 1)
    return [screen.line(cell, number, status.total, status.seconds_left) for number, cell in numbered if number > reported]

"""How a grid comes along on a terminal: one live table, plain lines elsewhere; of this process's grid, or of one elsewhere."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from rich.cells import set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from hippo_core.errors import LabError
from hippo_core.lab.grid.progress.status import LISTED, EndedStatus, RunningStatus, Status, StatusFile, absent, duration, poll, seconds_left
from hippo_core.lab.run.cells import Cell
from hippo_core.lab.run.execute import Outcome, Output

EVERY = 0.5  # seconds between two pictures, at least, and between two looks at the file of a grid elsewhere
SHOWN = 8  # ended cells, and running ones, that are listed
LINES = 8  # of the output of one cell
LONGEST = 2000  # characters of a message
COLOURS = {"done": "green", "failed": "red", "running": "yellow"}


@dataclass
class Progress:
    """What is known of a run of these cells on `jobs` workers; a context manager that draws while it is open."""

    cells: Sequence[Cell]
    jobs: int
    skipped: int = 0
    earlier: Mapping[str, float] = field(default_factory=dict)  # seconds of cells by their id, from earlier records
    file: StatusFile | None = None
    ended_cells: list[Outcome] = field(default_factory=list)
    running: dict[str, tuple[Cell, Output, float]] = field(default_factory=dict)
    live: Live | None = None
    started: float = field(default_factory=time.time)
    due: float = 0.0  # when it is drawn next, by the monotonic clock

    def __enter__(self) -> "Progress":
        console = Console()
        if console.is_terminal:
            self.live = Live(console=console, auto_refresh=False, transient=True)
            self.live.start()
        self.draw()
        return self

    def __exit__(self, *_: object) -> None:
        self.draw()
        if self.live:
            self.live.stop()

    def began(self, cell: Cell, output: Output) -> None:
        """A cell was given to a worker."""
        self.running[cell.id] = (cell, output, time.monotonic())

    def ended(self, outcome: Outcome) -> None:
        """A cell has ended; without a terminal this is when a line is printed."""
        self.running.pop(outcome.cell.id, None)
        self.ended_cells.append(outcome)
        if not self.live:
            print(ended_line(_ended(outcome), len(self.ended_cells), len(self.cells), self.seconds_left()), flush=True)

    def again(self, outcome: Outcome) -> None:
        """A cell has crashed and will run once more."""
        self.running.pop(outcome.cell.id, None)
        if not self.live:
            print(f"crashed: {outcome.cell.label}, {outcome.message}; it runs once more, alone", flush=True)

    def tick(self) -> None:
        """Time has passed."""
        if time.monotonic() >= self.due:
            self.draw()

    def draw(self) -> None:
        """Show how it stands now, on the terminal and in the file."""
        status = self.status()
        if self.file:
            self.file.show(status)
        if self.live:
            self.live.update(table(status), refresh=True)
        self.due = time.monotonic() + EVERY

    def status(self) -> Status:
        """How it stands now."""
        failed = [outcome for outcome in self.ended_cells if outcome.state == "failed"]
        now = time.monotonic()
        return Status(
            total=len(self.cells),
            done=len(self.ended_cells) - len(failed),
            failed=len(failed),
            skipped=self.skipped,
            started=self.started,
            updated=time.time(),
            seconds_left=self.seconds_left(),
            running=[
                RunningStatus(id=name, label=c.label, seconds=now - since, tail=output.lines)
                for name, (c, output, since) in self.running.items()
            ],
            failures=[_ended(outcome) for outcome in failed[-LISTED:]],
            last=[_ended(outcome) for outcome in self.ended_cells[-LISTED:]],
        )

    def seconds_left(self) -> float | None:
        """The time that is left; None where nothing is known of any cell."""
        ended = {outcome.cell.id for outcome in self.ended_cells}
        took = [(outcome.cell, outcome.seconds) for outcome in self.ended_cells if outcome.state == "done"]
        elapsed = {name: time.monotonic() - since for name, (_, _, since) in self.running.items()}
        return seconds_left([cell for cell in self.cells if cell.id not in ended], elapsed, took, self.earlier, self.jobs)


def _ended(outcome: Outcome) -> EndedStatus:
    cell, message = outcome.cell, outcome.message[:LONGEST]
    return EndedStatus(
        id=cell.id, label=cell.label, state=outcome.state, seconds=outcome.seconds, message=message, notebook=outcome.notebook
    )


def watch(run_id: str, cell: str = "") -> None:
    """Show how the grid of a run comes along until it ends; on a terminal with the output of the cell that runs longest, or of the first
    whose label holds `cell`. LabError where none runs."""
    first, works = poll(run_id)
    if first is None or not works:
        raise LabError(absent(run_id, first))
    status, console, reported = first, Console(), first.done + first.failed - len(first.last)
    live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
    try:
        with live or nullcontext():
            for status in follow(first):
                if live:
                    live.update(picture(status, cell, console.height), refresh=True)
                    continue
                ended = status.done + status.failed
                for number, one in enumerate(status.last, ended - len(status.last) + 1):
                    if number > reported:
                        print(ended_line(one, number, status.total, status.seconds_left), flush=True)
                reported = ended
    except KeyboardInterrupt:
        print("no longer watched; the grid goes on")
        return
    end = f"{run_id} {'has ended' if status.state == 'ended' else 'was stopped'}: {headline(status)}"
    print(absent(run_id, status) if status.state == "running" else end)


def follow(status: Status) -> Iterator[Status]:
    """The states of a grid as it writes them; the last is how it ended, or what a runner that was killed has left."""
    works = True
    while works:
        yield status
        time.sleep(EVERY)
        now, works = poll(status.run_id)
        status = now or status
    yield status


def picture(status: Status, cell: str, height: int) -> Group:
    """The live table, as many ended cells as there is room for, and the output of one cell."""
    free_lines = height - 2 * len(status.running) - LINES - 4
    shown = next((running for running in by_length(status) if cell in running.label), None)
    title = f"output of {shown.label}" if shown else f"no running cell's label holds {cell!r}"
    lines = [Text(""), Text(title, style="bold dim")] if shown or cell else []
    return Group(table(status, max(2, min(SHOWN, free_lines))), *lines, *(output_lines(shown, LINES) if shown else ()))


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


def ended_line(cell: EndedStatus, number: int, total: int, seconds_left: float | None) -> str:
    """What is printed where there is no terminal, when a cell has ended as the `number`-th of `total`."""
    left = f"{total - number} left" if number < total else "nothing left"
    time_left = f", about {duration(seconds_left)}" if number < total and seconds_left is not None else ""
    why = f"  {cell.message}" if cell.message else ""
    return f"[{number}/{total}] {cell.state} {cell.label} {cell.seconds:.1f} s, {left}{time_left}{why}"


def _row(label: str, state: str, seconds: float, width: int) -> Text:
    row = Text.assemble(set_cell_size(label, width), "  ", (f"{state:<7}", COLOURS[state]), f"  {seconds:7.1f}")
    row.no_wrap, row.overflow = True, "ellipsis"
    return row

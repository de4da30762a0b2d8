"""Follow a grid as it comes along: one live table on a terminal, plain lines elsewhere, and a file that others read."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live

from hippo_core.lab.grid.progress import eta, screen
from hippo_core.lab.grid.progress.status import LISTED, EndedStatus, RunningStatus, Status, StatusFile
from hippo_core.lab.run.cells import Cell
from hippo_core.lab.run.execute import Outcome
from hippo_core.lab.run.output import Output

LONGEST = 2000  # characters of a message
EVERY = 0.5  # seconds between two pictures, at least


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
        if self.file:
            self.file.next_part()

    def began(self, cell: Cell, output: Output) -> None:
        """A cell was given to a worker."""
        self.running[cell.id] = (cell, output, time.monotonic())

    def ended(self, outcome: Outcome) -> None:
        """A cell has ended; without a terminal this is when a line is printed."""
        self.running.pop(outcome.cell.id, None)
        self.ended_cells.append(outcome)
        if not self.live:
            print(screen.line(_ended(outcome), len(self.ended_cells), len(self.cells), self.seconds_left()), flush=True)

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
            self.live.update(screen.table(status), refresh=True)
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
        return eta.seconds_left([cell for cell in self.cells if cell.id not in ended], elapsed, took, self.earlier, self.jobs)


def _ended(outcome: Outcome) -> EndedStatus:
    cell, message = outcome.cell, outcome.message[:LONGEST]
    return EndedStatus(
        id=cell.id, label=cell.label, state=outcome.state, seconds=outcome.seconds, message=message, notebook=outcome.notebook
    )

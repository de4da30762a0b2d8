"""Show how a grid comes along: one live table on a terminal, plain lines elsewhere."""

import time
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .cells import Cell
from .execute import Outcome
from .said import Said

SHOWN = 8  # ended cells that stay in the table
COLOURS = {"done": "green", "failed": "red", "running": "yellow"}


@dataclass
class Progress:
    """What is known of a run of `total` cells on `jobs` workers; a context manager that draws while it is open."""

    total: int
    jobs: int
    skipped: int = 0
    estimate: float | None = None  # seconds of all cells together, from earlier records
    ended_cells: list[Outcome] = field(default_factory=list)
    running: dict[str, tuple[Cell, Said, float]] = field(default_factory=dict)
    live: Live | None = None
    started: float = field(default_factory=time.monotonic)

    def __enter__(self) -> "Progress":
        console = Console()
        if console.is_terminal:
            self.live = Live(console=console, get_renderable=self.table, refresh_per_second=2, transient=True)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()

    def began(self, cell: Cell, said: Said) -> None:
        """A cell was given to a worker."""
        self.running[cell.id] = (cell, said, time.monotonic())

    def ended(self, outcome: Outcome) -> None:
        """A cell has ended; without a terminal this is when a line is printed."""
        self.running.pop(outcome.cell.id, None)
        self.ended_cells.append(outcome)
        if not self.live:
            number = f"[{len(self.ended_cells)}/{self.total}]"
            why = f"  {outcome.message}" if outcome.message else ""
            print(f"{number} {outcome.state} {outcome.cell.label} {outcome.seconds:.1f} s, {self.left()}{why}", flush=True)

    def again(self, outcome: Outcome) -> None:
        """A cell has crashed and will run once more."""
        self.running.pop(outcome.cell.id, None)
        if not self.live:
            print(f"crashed: {outcome.cell.label}, {outcome.message}; it runs once more, alone", flush=True)

    def tick(self) -> None:
        """Time has passed."""
        if self.live:
            self.live.refresh()

    def left(self) -> str:
        """The time that is left, from what the cells of this run took so far, or from earlier records before any has ended."""
        count = self.total - len(self.ended_cells)
        spent = sum(outcome.seconds for outcome in self.ended_cells)
        if count == 0:
            return "nothing left"
        if not self.ended_cells:
            return f"{count} left" if self.estimate is None else f"{count} left, about {duration(self.estimate / self.jobs)}"
        return f"{count} left, about {duration(spent / len(self.ended_cells) * count / self.jobs)}"

    def table(self) -> Group:
        """The live table: the last cells that ended, those that run, and below it what the longest running one says."""
        table = Table(box=None, pad_edge=False, expand=False)
        for name in ("cell", "state"):
            table.add_column(name)
        table.add_column("seconds", justify="right")
        now = time.monotonic()
        rows = [(outcome.cell.label, outcome.state, outcome.seconds) for outcome in self.ended_cells[-SHOWN:]]
        rows += [(cell.label, "running", now - since) for cell, _, since in list(self.running.values())]
        for label, state, seconds in rows:
            table.add_row(label, Text(state, style=COLOURS[state]), f"{seconds:.1f}")
        return Group(table, Text(self.headline(), style="bold"), Text(self.last_line(), style="dim", no_wrap=True, overflow="ellipsis"))

    def headline(self) -> str:
        """Counts and time in one line."""
        failed = sum(outcome.state == "failed" for outcome in self.ended_cells)
        done = len(self.ended_cells) - failed
        spent = duration(time.monotonic() - self.started)
        return f"{done} done, {failed} failed, {len(self.running)} running, {self.skipped} skipped; {spent} so far, {self.left()}"

    def last_line(self) -> str:
        """The last line of output of the cell that runs longest and has said something."""
        return next((f"{cell.label}: {said.line}" for cell, said, _ in list(self.running.values()) if said.line), "")


def duration(seconds: float) -> str:
    """Seconds as a person says them: 42 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"

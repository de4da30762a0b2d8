"""Where cells run: in threads of this process, or on the workers of a Dask cluster. The engine knows one interface of both."""

from concurrent.futures import Future
from typing import Protocol

from hippo_core.lab.run.cells import Cell
from hippo_core.lab.run.execute import Outcome
from hippo_core.lab.run.output import Output


class Executor(Protocol):
    """Runs cells, several at a time, and keeps their records where the runner finds them."""

    def room(self, running: list[Cell]) -> int:
        """How many more cells may be handed over while these run."""
        ...

    def fits(self, cell: Cell, running: list[Cell]) -> bool:
        """Whether this cell's share of a GPU is free while these run."""
        ...

    def submit(self, cell: Cell, output: Output, alone: bool) -> Future[Outcome]:
        """Run a cell; `alone` says that no other runs at the same time, so that it may have all memory."""
        ...

    def stop(self) -> None:
        """End the kernels of all cells that run; nothing of them is kept."""
        ...

    def close(self) -> None:
        """No further cell comes."""
        ...

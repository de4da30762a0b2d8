"""One thing at a time in a notebook: long work runs piece by piece between the kernel's other messages, so that Cancel is heard."""

import asyncio
from collections.abc import Callable, Iterator

from hippo_core.files import in_a_line

Work = Iterator[str]  # each piece says how far it is, the last one how it ended


class Turns:
    """Runs one work at a time.

    Args:
        says: told what a work says, whether that is a mistake, and whether it has ended.
        next_work: the work that is done when one ends in whose time another one was asked for.
    """

    def __init__(self, says: Callable[[str, bool, bool], None], next_work: Callable[[], Work]) -> None:
        self._says, self._next_work = says, next_work
        self.busy = self._again = self._cancelled = False
        self._task: asyncio.Task[None] | None = None

    def start(self, work: Work) -> None:
        """Do this now, where a loop runs piece by piece; while something else is being done, `next_work` when that has ended."""
        if self.busy:
            self._again = True
            return
        self.busy = True
        try:
            self._task = asyncio.get_running_loop().create_task(self._between_messages(work))
        except RuntimeError:
            self.finish(work)

    def finish(self, work: Work) -> None:
        """Do this before anything else."""
        for _ in self._pieces(work):
            pass

    def cancel(self) -> None:
        """Leave what is being done after its present piece."""
        self._cancelled = self.busy

    async def _between_messages(self, work: Work) -> None:
        for _ in self._pieces(work):
            await asyncio.sleep(0.001)

    def _pieces(self, work: Work) -> Iterator[None]:
        self.busy, self._cancelled, last, wrong = True, False, "", False
        try:
            for last in work:
                self._says(last, False, False)
                yield
                if self._cancelled:
                    last = "cancelled: nothing that was under way is kept"
                    break
        except Exception as error:
            last, wrong = in_a_line(error), True
        finally:
            getattr(work, "close", lambda: None)()
            self.busy = False
            self._says(last, wrong, True)
        if self._again:
            self._again = False
            self.start(self._next_work())

"""What sleep has put into a language model, kept in a folder. The model is changed only while it is asked so: at rest it is as it was."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.files import LabError, read_object
from hippo_core.plugins import imported
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

TRAINING = "hippo_core.training.consolidation.live"  # a layer above: loaded when something is learnt, or taken up
LINEAGE = "lineage.json"


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What a sleep has put into a model.

    Args:
        way: by which it went in, such as `lora`.
        steps: of training.
        at: when the sleep ended.
        sentences: the text of each sentence that was rehearsed, by its number. One in which nothing can be asked for is not among them.
    """

    way: str
    steps: int
    at: datetime
    sentences: dict[int, str]


class Consolidation:
    """What sleep puts into a model.

    Args:
        lm: the model, or one that is loaded when it is needed (`LazyModel`). Only one consolidation of a model may be attached at a time.
        folder: where what is learnt lies; it need not be there.
    """

    def __init__(self, lm: Any, folder: Path) -> None:
        self._lm, self.folder = lm, folder
        self._way: Any = None
        self._attached: tuple[int, ...] | None = None  # the version that is
        self._off = ExitStack()  # holds the model unchanged at rest

    @property
    def version(self) -> tuple[int, ...] | None:
        """Changes with what lies in the folder; None where there is nothing."""
        try:
            stat = (self.folder / LINEAGE).stat()
        except FileNotFoundError:
            return None
        return stat.st_ino, stat.st_mtime_ns

    @property
    def consolidated(self) -> Consolidated | None:
        """What was learnt, and when; None where there is nothing. LabError where it is damaged."""
        if self.version is None:
            return None
        made = read_object(self.folder / LINEAGE)
        try:
            told = {int(number): str(text) for number, text in made["sentences"].items()}
            return Consolidated(made["recipe"]["way"], made["recipe"]["steps"], datetime.fromisoformat(made["at"]), told)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise LabError(f"{self.folder / LINEAGE} is damaged, or an earlier version's; sleep again, or remove the folder") from None

    def learn(self, traces: Sequence[Trace], way: str, steps: int) -> Iterator[int]:
        """Rehearse traces into the model, in place of what an earlier sleep put there; yields how many steps are done, from 0. Left before
        its end, or ended by an error, everything is as it was before.

        Raises:
            LabError: an unknown way, steps below 1, or nothing can be asked about any of the traces.
        """
        self.detach()
        yield from imported(f"{TRAINING}:learn", "consolidation")(self._real, traces, way, steps, self.folder)

    def fits(self, question: str) -> bool:
        """Whether what was learnt has a say in this question's answer; a gate keeps it out of strangers'. LabError where it is damaged."""
        way = self._taken_up()
        return way is not None and way.fits([question])[0]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Within the block the model is as the sleep made it."""
        way = self._taken_up()
        self._off.close()
        try:
            yield
        finally:
            if way is not None:
                self._off.enter_context(way.unchanged())

    def detach(self) -> None:
        """Take nothing from the folder, and leave the model as it was found; it is attached again when it is needed."""
        self._off.close()
        if self._way is not None:
            self._way.detach()
        self._way = self._attached = None

    def remove(self) -> None:
        """Leave the model as it was before any sleep, for good."""
        self.detach()
        (self.folder / LINEAGE).unlink(missing_ok=True)  # first: without it there is nothing, wherever this ends
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _real(self) -> "LanguageModel":
        return getattr(self._lm, "loaded", self._lm)

    def _taken_up(self) -> Any:
        """The way that holds what the folder has now, attached; None where it has nothing."""
        version = self.version
        if version != self._attached:
            self.detach()
            if version is not None:
                self._way = imported(f"{TRAINING}:take_up", "consolidation")(self._real, self.folder)
                self._off.enter_context(self._way.unchanged())
            self._attached = version
        return self._way

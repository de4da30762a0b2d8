"""What sleep has put into a language model, kept in a folder. The model is changed only while it is asked so: at rest it is as it was."""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.files import MARK, is_marked, mark, read_sealed, remove_made, remove_unwritten
from hippo_core.models.lazy_model import LazyModel
from hippo_core.plugins import imported
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

TRAINING = "hippo_core.training.consolidation.live"  # a layer above: loaded when something is learnt, or taken up
LINEAGE = "lineage.json"
UPDATE_NAME = re.compile("[0-9a-f]{16}")  # the name of a subfolder that a sleep writes into
HOLDER = "hippo_consolidation"  # of a model: the consolidation that is attached to it


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What a sleep has put into a model."""

    way: str  # by which it went in, such as `lora`
    steps: int  # of training
    at: datetime  # when the sleep ended
    sentences: dict[int, str]  # that were rehearsed, by number


class Consolidation:
    """What sleep puts into a model `lm` (or a `LazyModel`); `folder` is where what is learnt lies, there yet or not. Several may share a
    model: one is attached at a time, and is detached when another is asked."""

    def __init__(self, lm: Any, folder: Path) -> None:
        self._lm, self.folder = lm, folder
        self._update_rule: Any = None
        self._attached: tuple[int, ...] | None = None  # the version that is
        self._off = ExitStack()  # holds the model unchanged at rest
        self._use = ""  # what keeps the model busy

    @property
    def version(self) -> tuple[int, ...] | None:
        """Changes with what lies in the folder; None where there is nothing. LabError where the folder is a link."""
        try:
            stat = (self.folder / LINEAGE).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if self.folder.is_symlink():
            raise LabError(f"{self.folder} is a link, and the lab follows none; put the folder itself in its place")
        return stat.st_ino, stat.st_mtime_ns

    @property
    def consolidated(self) -> Consolidated | None:
        """The update and its date; None where there is nothing. LabError where it is damaged."""
        if self.version is None:
            return None
        made = read_lineage(self.folder)
        try:
            sentences = {int(number): str(text) for number, text in made["sentences"].items()}
            return Consolidated(made["recipe"]["way"], made["recipe"]["steps"], datetime.fromisoformat(made["at"]), sentences)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise LabError(f"{self.folder / LINEAGE} is damaged, or an earlier version's; sleep again, or remove the folder") from None

    def learn(self, traces: Sequence[Trace], update_rule: str, steps: int) -> Generator[int, None, None]:
        """Rehearse traces into the model, in place of what an earlier sleep put there; yields how many steps are done, from 0.

        Left before its end, everything is as it was before. LabError for an unknown way, steps below 1, nothing that can be asked about the
        traces, and a busy model.
        """
        lm = self._detached_model()
        with self._busy("a sleep rehearses into it"):
            yield from imported(f"{TRAINING}:learn", "consolidation")(lm, traces, update_rule, steps, self.folder)

    def fits(self, question: str) -> bool:
        """Whether the update affects this question's answer. LabError where it is damaged, or the model is busy."""
        update_rule = self._current_update()
        return update_rule is not None and update_rule.fits([question])[0]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Within the block the model is as the sleep made it. LabError where it is damaged, or the model is busy."""
        update_rule = self._current_update()
        self._off.close()
        try:
            with self._busy("it answers as a sleep made it"):
                yield
        finally:
            if update_rule is not None:
                self._off.enter_context(update_rule.unchanged())

    def detach(self) -> None:
        """Take nothing from the folder, and leave the model as it was found, until it is needed again. LabError where it is busy."""
        self._require_idle()
        self._off.close()
        if self._update_rule is not None:
            self._update_rule.detach()
        self._update_rule = self._attached = None
        if self._holder is self:
            delattr(self._real.model, HOLDER)

    def remove(self) -> None:
        """Leave the model as it was before any sleep, for good."""
        self.detach()
        if self.version is not None and is_own(self.folder):
            with suppress(LabError):  # a damaged one names nothing
                name = str(read_lineage(self.folder).get("folder"))
                folder = self.folder / name
                if UPDATE_NAME.fullmatch(name) and folder.is_dir() and not folder.is_symlink():
                    mark(folder)  # where its mark was damaged
            (self.folder / LINEAGE).unlink(missing_ok=True)  # first: without it there is nothing, wherever this ends
        clear(self.folder)

    def tidy(self) -> None:
        """Put right what a kill has left."""
        if self.version is None:
            clear(self.folder)

    @property
    def _real(self) -> "LanguageModel":
        return getattr(self._lm, "loaded", self._lm)

    @property
    def _holder(self) -> "Consolidation | None":
        """What is attached to the model: this, another memory's, or nothing."""
        loaded = self._lm.present if isinstance(self._lm, LazyModel) else self._lm
        return getattr(loaded.model, HOLDER, None) if loaded else None

    def _detached_model(self) -> "LanguageModel":
        """The model, with nothing attached to it, for this alone: another holder is detached."""
        (self._holder or self).detach()
        lm = self._real
        setattr(lm.model, HOLDER, self)
        return lm

    def _current_update(self) -> Any:
        """The update in the folder, attached; None where there is none."""
        if (holder := self._holder) is not None:
            holder._require_idle()
        version = self.version
        if version != self._attached:
            self.detach()
            if version is not None:
                self._update_rule = imported(f"{TRAINING}:load_update", "consolidation")(self._detached_model(), self.folder)
                self._off.enter_context(self._update_rule.unchanged())
            self._attached = version
        return self._update_rule

    @contextmanager
    def _busy(self, use: str) -> Iterator[None]:
        self._use = use
        try:
            yield
        finally:
            self._use = ""

    def _require_idle(self) -> None:
        if self._use:
            raise LabError(f"{self._lm.spec.name} is busy: {self._use} ({self.folder}); try again when that has ended")


def read_lineage(folder: Path) -> dict[str, Any]:
    """A folder's lineage file; LabError where the lab did not write it so."""
    return read_sealed(folder / LINEAGE, "sleep again, or move it away")


def is_own(folder: Path) -> bool:
    """Whether the lab wrote a folder's lineage file, which may be replaced and removed then."""
    with suppress(LabError):
        return is_marked(folder) or bool(read_lineage(folder))
    return False


def clear(folder: Path, keep: str = "") -> None:
    """Remove what sleeps have left in a folder, but for the subfolder `keep`, and the empty folder; what the lab did not make stays."""
    if folder.is_symlink() or not folder.is_dir():
        return
    remove_unwritten(folder / LINEAGE)
    for earlier in folder.iterdir():
        if earlier.name != keep:
            remove_made(earlier)
    if [entry.name for entry in folder.iterdir()] == [MARK]:
        remove_made(folder)

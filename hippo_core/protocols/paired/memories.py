"""The memory under test: a preset of this lab, a class of one's own (`package.module:NAME`), or a program (`command:...`)."""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.files import in_a_line
from hippo_core.live.memory import LiveMemory
from hippo_core.methods.base import Observation
from hippo_core.methods.presets import load_preset
from hippo_core.plugins import imported, is_path, located
from hippo_core.protocols.paired.conditions import MEMORY, MemoryUnderTest, RetrievedNotes, best_of, ranked
from hippo_core.protocols.paired.program import Program
from hippo_core.protocols.paired.settings import COMMAND, RunSettings
from hippo_core.protocols.paired.suite import SuiteNote
from hippo_core.store.trace import Statement

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


class PresetUnderTest:
    """`hippo_core.Memory` of a preset in a new folder of its own, taught the notes of one world."""

    def __init__(self, lm: "str | LanguageModel", preset: str, settings: Mapping[str, Any], notes: Sequence[SuiteNote]) -> None:
        self._notes = notes
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hippo-paired-"))
            self._memory = stack.enter_context(LiveMemory(lm, preset, settings).open(folder))
            observations = [Observation(Statement("", "", note.text, 0), teller=note.who, context_key=note.when) for note in notes]
            for _block in self._memory.tell(observations):
                pass
            self._stack = stack.pop_all()

    def recall(self, question: str, k: int) -> RetrievedNotes:
        """The k best notes for a question, the rest of the ranking behind them."""
        result = self._memory.recall(question, len(self._notes))
        ids = list(dict.fromkeys(self._notes[trace.id - 1].id for trace in result.traces))
        seconds = (result.ms.get("recall", 0.0) + result.ms.get("completion", 0.0)) / 1e3
        return replace(best_of(ids, self._notes, k), confidence=result.confidence, seconds=seconds)

    def close(self) -> None:
        """Its folder goes."""
        self._stack.close()


class OwnMemory:
    """An object of a class of the user's: `NAME(notes)` has `recall(question, k)`, which returns ids of notes, best first, or (id, score)
    pairs. What it raises is the item's error, also when it is made."""

    def __init__(self, path: str, notes: Sequence[SuiteNote]) -> None:
        self._where, self._notes, self._memory, self._broken = f"memory {path}", notes, None, ""
        made_by = memory_class(path)
        try:
            self._memory = made_by([note.model_dump() for note in notes])
        except Exception as error:  # anything at all: it is another's code, and the other conditions go on
            self._broken = self._error_text(error)

    def recall(self, question: str, k: int) -> RetrievedNotes:
        """What its `recall` returns, checked; what it raises is the item's error."""
        if self._broken:
            return RetrievedNotes(error=self._broken)
        begin = time.perf_counter()
        try:
            returned = list(self._memory.recall(question, k))  # pyright: ignore[reportOptionalMemberAccess] - it is broken otherwise
            seconds = time.perf_counter() - begin
            ids = [str(entry if isinstance(entry, str) else entry[0]) for entry in returned]
        except Exception as error:
            return RetrievedNotes(error=self._error_text(error))
        return ranked(self._where, ids, self._notes, k, seconds)

    def close(self) -> None:
        """Its own `close`, where it has one."""
        getattr(self._memory, "close", lambda: None)()

    def _error_text(self, error: Exception) -> str:
        return f"{self._where}: {type(error).__name__}: {in_a_line(error)}"


def memory_class(path: str) -> type[Any]:
    """The class that `package.module:NAME` names. LabError for anything that is no class with a method `recall`: it is never called."""
    where = f"memory {path}"
    try:
        loaded = imported(path, where)
    except LabError:
        raise
    except Exception as error:
        raise LabError(f"{where}: its module cannot be imported: {type(error).__name__}: {in_a_line(error)}") from None
    if not (isinstance(loaded, type) and callable(getattr(loaded, "recall", None))):
        got = f"the class {loaded.__name__}" if isinstance(loaded, type) else type(loaded).__name__
        raise LabError(f"{where}: expected a class with recall(question, k), got {got}")
    return loaded


def check_memory(name: str, encoder: str) -> None:
    """LabError for a name that is no memory's. A module that is not loaded yet is looked for and not run, so that it may be found wrong
    later."""
    own = is_path(name) and not name.startswith(COMMAND)
    if not own or located(name, f"memory {name}") in sys.modules:
        opener(name, "", encoder)


def opener(name: str, lm: "str | LanguageModel", encoder: str, timeout_s: float = 60.0) -> Callable[[Sequence[SuiteNote]], MemoryUnderTest]:
    """What opens the memory of this name for the notes of a world. `encoder`: of presets that have one. LabError for an unknown name."""
    if name.startswith(COMMAND):
        return lambda notes: Program(name.removeprefix(COMMAND), notes, timeout_s)
    if is_path(name):
        memory_class(name)
        return lambda notes: OwnMemory(name, notes)
    settings = {"encoder": encoder} if hasattr(load_preset(name, {}).settings, "encoder") else {}
    load_preset(name, settings)
    return lambda notes: PresetUnderTest(lm, name, settings, notes)


def memory_opener(settings: RunSettings, lm: "str | LanguageModel") -> Callable[[str, Sequence[SuiteNote]], MemoryUnderTest]:
    """What opens, by its name, the memory of a condition for the notes of a world."""

    def open_memory(name: str, notes: Sequence[SuiteNote]) -> MemoryUnderTest:
        return opener(settings.memory if name == MEMORY else name, lm, settings.encoder, settings.timeout_s)(notes)

    return open_memory

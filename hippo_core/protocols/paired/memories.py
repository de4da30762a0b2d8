"""The memory under test: a preset of this lab, a class of one's own (`package.module:NAME`), or a program (`command:...`)."""

import ast
import re
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
from hippo_core.plugins import imported, is_path, located, source_of
from hippo_core.protocols.paired.conditions import MEMORY
from hippo_core.protocols.paired.program import Program
from hippo_core.protocols.paired.retrieval import MemoryUnderTest, RetrievedNotes, best_of
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
        try:
            self._memory = memory_class(path)([note.model_dump() for note in notes])
        except LabError:
            raise
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
    """LabError for a name that is no memory's. A module that is not loaded yet is read and not run, so that it may be found wrong later."""
    if name.startswith(COMMAND) or not is_path(name):
        opener(name, "", encoder)
    elif located(name, where := f"memory {name}") in sys.modules:
        memory_class(name)
    elif (source := source_of(name)) is not None and (got := _no_class(source, name.partition(":")[2])):
        raise LabError(f"{where}: expected a class with recall(question, k), got {got}")


def _no_class(source: str, name: str) -> str:
    """What a name of a module is, as far as its text tells, where that is no class with a `recall`; "" where it may be one."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        return f"a module that cannot be read ({in_a_line(error)})"
    for node in reversed(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return "a function"
        if isinstance(node, ast.ClassDef) and node.name == name:
            own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            return "" if own & {"recall"} or node.bases or node.decorator_list else f"the class {name}"
    made_elsewhere = re.search(rf"\b({name}|__getattr__)\b|import \*", source)
    return "" if made_elsewhere else "no such name"


class ProgramMemory:
    """A program that is taught and asked in JSON lines."""

    def __init__(self, command: str, notes: Sequence[SuiteNote], timeout_s: float) -> None:
        self._notes, self._program = notes, Program(command, timeout_s)
        try:
            self._program.teach([note.model_dump() for note in notes])
        except BaseException:
            self._program.close()
            raise

    def recall(self, question: str, k: int) -> RetrievedNotes:
        """What the program returns, checked; a broken message is the item's error."""
        begin = time.perf_counter()
        try:
            reply = self._program.recall(question, k)
        except LabError as error:
            return RetrievedNotes(error=str(error))
        seconds = time.perf_counter() - begin
        result = ranked(self._program.name, [hit.id for hit in reply.results], self._notes, k, seconds)
        own = {"tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out, "tokens_cached": reply.tokens_cached}
        return replace(result, **own, answer=reply.answer, confidence=reply.confidence)

    def close(self) -> None:
        """The program and all that it started end."""
        self._program.close()


def ranked(where: str, ids: Sequence[str], notes: Sequence[SuiteNote], k: int, seconds: float) -> RetrievedNotes:
    """A ranking that somebody else's memory returned; an unknown or repeated id is an error of the item."""
    known = {note.id for note in notes}
    if strange := next((note_id for note_id in ids if note_id not in known), None):
        return RetrievedNotes(seconds=seconds, error=f"{where}: recalled {strange!r}, which is no id of a note that it was taught")
    if len(set(ids)) < len(ids):
        return RetrievedNotes(seconds=seconds, error=f"{where}: recalled a note twice: {', '.join(ids[:8])}")
    return replace(best_of(ids, notes, k), seconds=seconds)


def opener(name: str, lm: "str | LanguageModel", encoder: str, timeout_s: float = 60.0) -> Callable[[Sequence[SuiteNote]], MemoryUnderTest]:
    """What opens the memory of this name for the notes of a world. `encoder`: of presets that have one. LabError for an unknown name."""
    if name.startswith(COMMAND):
        return lambda notes: ProgramMemory(name.removeprefix(COMMAND), notes, timeout_s)
    if is_path(name):
        memory_class(name)
        return lambda notes: OwnMemory(name, notes)
    settings = {"encoder": encoder} if hasattr(load_preset(name, {}).settings, "encoder") else {}
    load_preset(name, settings)
    return lambda notes: PresetUnderTest(lm, name, settings, notes)


def memory_opener(settings: RunSettings, lm: "str | LanguageModel") -> Callable[[str, Sequence[SuiteNote]], MemoryUnderTest]:
    """What opens, by its name, the memory of a condition for the notes of a world."""

    def open_memory(name: str, notes: Sequence[SuiteNote]) -> MemoryUnderTest:
        preset = settings.memory if name == MEMORY else name
        return opener(preset, lm, settings.encoder, settings.timeout_s)(notes)

    return open_memory

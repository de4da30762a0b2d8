"""Somebody else's memory as a program: JSON lines on its standard input and output, version 1 of the protocol (docs/paired.md).

    us    {"schema_version": 1, "type": "teach", "notes": [{"id": "n1", "text": "...", ...}, ...]}
    it    {"schema_version": 1, "type": "taught", "count": 17}
    us    {"schema_version": 1, "type": "recall", "number": 1, "question": "...", "k": 5}
    it    {"schema_version": 1, "type": "recalled", "number": 1, "results": [{"id": "n1", "score": 0.7}, ...]}

One process a world and condition, in an empty folder, with an environment of a few plain names; no shell. After a broken message or a time
limit its whole process group is killed, and no further question is put to it.
"""

import json
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.errors import LabError
from hippo_core.models.spec import validated
from hippo_core.protocols.paired.conditions import RetrievedNotes, ranked
from hippo_core.protocols.paired.suite import SuiteNote
from hippo_core.suites.folder.lines import read_line

PROTOCOL = 1
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "SYSTEMROOT")  # of our environment; no key, no home
LONGEST = 16 * 2**20  # bytes of a message
SHOWN = 160  # characters of a broken message that an error quotes
Tokens = Annotated[int, Field(ge=0)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    schema_version: Literal[1]


class ProgramTaught(_Message):
    """The reply to `teach`."""

    type: Literal["taught"]
    count: int


class Result(BaseModel):
    """A note that was recalled."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str
    score: float | None = None


class ProgramRecall(_Message):
    """The reply to `recall`; best first. `answer`: of a memory that answers itself; cached tokens are part of `tokens_in`."""

    type: Literal["recalled"]
    number: int
    results: list[Result]
    answer: str | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    tokens_in: Tokens = 0
    tokens_out: Tokens = 0
    tokens_cached: Tokens = 0


class Program:
    """A running program, taught the notes of its world in order. LabError, naming the message, where it cannot be taught."""

    def __init__(self, command: str, notes: Sequence[SuiteNote], timeout_s: float = 60.0) -> None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise LabError(f"memory command: {error} in {command!r}; quote its words as in a shell") from None
        if not words:
            raise LabError("memory command: is empty; expected command:PROGRAM ARGUMENTS")
        self.name, self._notes, self._timeout = f"memory {words[0]}", notes, timeout_s
        self._count, self._buffer, self._broken = 0, b"", ""
        self._folder = tempfile.TemporaryDirectory(prefix="hippo-program-")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"HOME": self._folder.name}
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=self._folder.name,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._folder.cleanup()
            raise LabError(f"{self.name} cannot be started: {getattr(error, 'strerror', error)}; name a program by its full path") from None
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(pipe.fileno(), False)  # pyright: ignore[reportOptionalMemberAccess]

        try:
            reply = self._exchange({"type": "teach", "notes": [note.model_dump() for note in notes]}, ProgramTaught)
            if reply.count != len(notes):
                raise self._break(f"the reply to teach counts {reply.count} notes, {len(notes)} were told")
        except BaseException:
            self.close()
            raise

    def recall(self, question: str, k: int) -> RetrievedNotes:
        """The k best notes, checked; a broken message is the item's error."""
        begin = time.perf_counter()
        try:
            reply = self._asked(question, k)
        except LabError as error:
            return RetrievedNotes(error=str(error))
        result = ranked(self.name, [hit.id for hit in reply.results], self._notes, k, time.perf_counter() - begin)
        own = {"tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out, "tokens_cached": reply.tokens_cached}
        return replace(result, **own, answer=reply.answer, confidence=reply.confidence)

    def _asked(self, question: str, k: int) -> ProgramRecall:
        if self._broken:
            raise LabError(self._broken)
        self._count += 1
        reply = self._exchange({"type": "recall", "number": self._count, "question": question, "k": k}, ProgramRecall)
        if reply.number != self._count:
            raise self._break(f"the reply is to question {reply.number}, number {self._count} was asked")
        if reply.tokens_cached > reply.tokens_in:
            cached = f"more cached tokens ({reply.tokens_cached}) than tokens_in ({reply.tokens_in})"
            raise self._break(f"the reply to question {self._count} has {cached}")
        return reply

    def close(self) -> None:
        """End it and all that it started in its process group."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()
        self._folder.cleanup()

    def _exchange(self, message: dict[str, Any], form: Any) -> Any:
        line = json.dumps({"schema_version": PROTOCOL, **message}, ensure_ascii=False).encode() + b"\n"
        what = f"the reply to {message['type']}" + (f" {message['number']}" if "number" in message else "")
        raw = self._answer_to(line, what)
        try:
            where = f"{self.name}: {what}"
            return validated(form, read_line(where, raw), where)
        except LabError as error:
            raise self._break(f"{str(error).removeprefix(self.name + ': ')}; it said {raw[:SHOWN].decode('utf-8', 'replace')!r}") from None

    def _answer_to(self, line: bytes, what: str) -> bytes:
        """The line that it answers, within its time for a message."""
        assert self._process.stdin is not None and self._process.stdout is not None
        to, answer = self._process.stdin.fileno(), self._process.stdout.fileno()
        deadline = time.monotonic() + self._timeout
        with selectors.DefaultSelector() as waiting:
            waiting.register(to, selectors.EVENT_WRITE)
            waiting.register(answer, selectors.EVENT_READ)
            while line or b"\n" not in self._buffer:
                ready = {key.fd for key, _ in waiting.select(max(0.0, deadline - time.monotonic()))}
                if not ready:
                    unread = "; it does not read its input" if line else ""
                    raise self._break(f"{what} did not come within {self._timeout:g} s{unread}")
                if to in ready:
                    try:
                        line = line[os.write(to, line) :]
                    except BrokenPipeError:
                        raise self._break(f"it ended before {what}{self._last_words()}") from None
                if not line and to in waiting.get_map():
                    waiting.unregister(to)
                if answer in ready:
                    if not (read := os.read(answer, 2**16)):
                        raise self._break(f"it ended before {what}{self._last_words()}")
                    self._buffer += read
                    if len(self._buffer) > LONGEST:
                        raise self._break(f"{what} is longer than {LONGEST:,} bytes")
        raw, _, self._buffer = self._buffer.partition(b"\n")
        return raw

    def _last_words(self) -> str:
        """The last line of its standard error."""
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"; its last words: {lines[-1][:SHOWN]}" if lines else ""

    def _break(self, why: str) -> LabError:
        """The error that ends it; its process group is killed."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._broken = self._broken or f"{self.name}: {why}"
        return LabError(self._broken)

"""Evidence that a memory was asked, counted by the harness: a local socket on which contained commands ask it, one JSON line each way.

A command cannot forge it: what counts is what the harness answered, not what a file in the workspace says. Without a memory there is no
socket. Asked: `{"id": "q1"}`, a required question by its name, or `{"question": "..."}`. Answered: `{"results": [{"text": ...}]}` or
`{"error": ...}`. unix(7): a socket's path is a file, so it reaches through the network namespace of a contained command.
"""

import json
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from hippo_core.errors import LabError
from hippo_core.files import in_a_line
from hippo_core.protocols.paired.agents.containment import hand_over
from hippo_core.protocols.paired.agents.workspace import temporary
from hippo_core.text import normal

Recall = Callable[[str], Sequence[Mapping[str, Any]]]  # a question -> what a memory finds, best first
HELPER = Path(__file__).with_name("query_memory.py")
MOST_BYTES = 1 << 16  # of a request
MOST_QUERIES = 1000
WAIT = 0.02  # seconds for a connection
PATIENCE = 2.0  # seconds for a request to arrive


@dataclass(frozen=True)
class MemoryCall:
    """One query: the question's name ("" where it is none of the required), and how many results it got. A message that is no query has no
    question and an error."""

    id: str
    question: str
    results: int
    error: str = ""


@dataclass
class MemorySocket:
    """Answers from a memory, and counts. `required`: question name -> its text."""

    recall: Recall
    required: Mapping[str, str]
    uid: int
    asked: list[MemoryCall] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self.folder = self._stack.enter_context(temporary("hippo-memory."))  # short: a socket's path has 108 bytes at most
        shutil.copy(HELPER, self.folder / "query")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.folder / "socket"))
        self._listener.listen(16)
        self._listener.settimeout(WAIT)
        hand_over(self.folder, self.uid)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._stack.close()

    def serve(self) -> None:
        """Answer one query, if one comes soon. Call it again and again while the command runs: in the thread that opened the memory, since
        many a memory (SQLite) answers in no other."""
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return
        with connection, suppress(OSError):  # it hung up, or never spoke
            connection.settimeout(PATIENCE)
            connection.sendall(self._answer(_line(connection)))

    def _answer(self, line: bytes) -> bytes:
        """The answer to a line, and a note of it."""
        if len(self.asked) >= MOST_QUERIES:
            return _json({"error": f"more than {MOST_QUERIES} queries"})
        name = question = ""
        try:
            name, question = self._question(line)
            results = [dict(result) for result in self.recall(question)]
            answer = _json({"results": results})
            self.asked.append(MemoryCall(name, question, len(results)))
        except Exception as error:  # a memory of the user's may raise anything, or return what is no JSON; the agent's run goes on
            message = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {in_a_line(error)}"
            answer = _json({"error": "the memory failed" if question else message})
            self.asked.append(MemoryCall(name, question, 0, message))
        return answer

    def _question(self, line: bytes) -> tuple[str, str]:
        """The name of a required question, or "", and the words; LabError for a line that asks nothing."""
        try:
            request = json.loads(line)
            name, question = str(request.get("id", "")), str(request.get("question", ""))
        except (ValueError, AttributeError, RecursionError):
            raise LabError('expected one line of JSON, {"id": ...} or {"question": ...}') from None
        if name and name not in self.required:
            raise LabError(f"no required question {name!a:.80}; legal: {', '.join(self.required)}")
        question = self.required[name] if name else normal(question, "the question")
        if not question:
            raise LabError("the question is empty")
        return name or next((key for key, text in self.required.items() if _plain(text) == _plain(question)), ""), question


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _line(connection: socket.socket) -> bytes:
    got, until = b"", time.monotonic() + PATIENCE
    while not got.endswith(b"\n") and len(got) < MOST_BYTES and time.monotonic() < until:
        if not (piece := connection.recv(4096)):
            break
        got += piece
    return got

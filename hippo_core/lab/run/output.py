"""What a running cell says: the last lines of its output, as a terminal would show them."""

from collections import deque
from threading import Lock

from rich.ansi import AnsiDecoder

LINES, WIDTH = 20, 500  # what is kept: lines, and characters of a line


class Output:
    """A place to write text to, from any thread, that keeps its last lines, blank ones left out; a carriage return begins the line again.
    Escapes of a terminal are taken out when the lines are read."""

    def __init__(self) -> None:
        self._ended: deque[str] = deque(maxlen=LINES)
        self._open = ""
        self._lock = Lock()

    def write(self, text: str) -> int:
        """Take a piece of output."""
        with self._lock:
            *ended, last = (self._open + text).split("\n")
            self._ended.extend(line for line in map(_overwritten, ended) if line.strip())
            self._open = _overwritten(last) + "\r" * last.endswith("\r")
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    @property
    def lines(self) -> list[str]:
        """The last lines, plain text, the newest last; it may still grow."""
        with self._lock:
            lines = [*self._ended, _overwritten(self._open)]
        return [line for line in map(_plain, lines) if line][-LINES:]

    @property
    def line(self) -> str:
        """The last line; empty where nothing was said."""
        return self.lines[-1].strip() if self.lines else ""


def _overwritten(line: str) -> str:
    """What stands in a line in the end: the text after the last carriage return that has any."""
    return next((piece for piece in reversed(line.split("\r")) if piece), "")[:WIDTH]


def _plain(line: str) -> str:
    shown = AnsiDecoder().decode_line(line).plain.expandtabs(4)
    return "".join(letter if letter.isprintable() else " " for letter in shown).rstrip()

"""What a command writes, kept within bounds: the first and the last bytes of a stream, and how many between them were cut."""

from dataclasses import dataclass
from typing import IO

PIECE = 1 << 16


@dataclass(frozen=True)
class Captured:
    """What became of a command.

    `status` is its exit code (minus the signal's number where one killed it), None where it did not end by itself.
    `ended` says why: "exit", "timeout" or "memory". `left` counts processes that outlived it and were killed.
    `stdout` and `stderr` are bytes as they came, with a note where `cut` bytes of both are left out.
    """

    status: int | None
    ended: str
    seconds: float
    left: int
    stdout: bytes
    stderr: bytes
    cut: int = 0

    @property
    def why(self) -> str:
        """What is wrong with it, in words; empty where it ended with 0."""
        if self.ended == "timeout":
            return f"timed out after {self.seconds:.1f} s; it and all that it started were killed"
        if self.ended == "memory":
            return "its processes together held more memory than allowed; all were killed"
        return f"exit status {self.status}" if self.status else ""


class Bounded:
    """The first and the last half of `most` bytes; little more than these in memory."""

    def __init__(self, most: int) -> None:
        self.half, self.total = max(most // 2, 1), 0
        self.first, self.last = bytearray(), bytearray()

    def drain(self, file: IO[bytes]) -> None:
        """Read a pipe to its end, and close it."""
        with file:
            while piece := file.read(PIECE):
                self.total += len(piece)
                free = self.half - len(self.first)
                self.first += piece[:free]
                self.last += piece[free:]
                if len(self.last) > 2 * self.half + PIECE:
                    del self.last[: -self.half]

    @property
    def cut(self) -> int:
        """How many bytes are left out."""
        return self.total - len(self.first) - min(len(self.last), self.half)

    def content(self) -> bytes:
        """The bytes, with a line that says how many are cut."""
        return bytes(self.first) + (b"\n[%d bytes cut]\n" % self.cut if self.cut else b"") + bytes(self.last[-self.half :])

"""What a user can mend: one line that says what was expected, what came, and the way out."""

from collections.abc import Iterable


class LabError(Exception):
    """A mistake that the user can mend. The message is one line: what was expected, what came, the way out."""

    def __str__(self) -> str:
        return " ".join(super().__str__().splitlines())

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it: the message, without the library's frames (IPython asks for this)."""
        return [f"{type(self).__name__}: {self}"]


class UnknownName(LabError):
    """A name that does not exist; `name` is it."""

    def __init__(self, message: str, name: object = None) -> None:
        super().__init__(message)
        self.name = name


def shortened(text: str, most: int = 200) -> str:
    """A text that a message quotes: its beginning where it is long."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def unknown(what: str, name: object, legal: Iterable[str]) -> UnknownName:
    """The error for a name that does not exist; it lists those that do."""
    return UnknownName(f"unknown {what} {shortened(repr(name))}; legal: {', '.join(sorted(legal))}", name)

"""Look-ups that stay quick in a world of 100,000 facts: positions in a list that many items share, and texts inside another text."""

from collections.abc import Callable, Mapping
from typing import TypeVar

Ids = tuple[str, ...]
Result = TypeVar("Result")


def cached_by_identity(work: Callable[[Ids], Result]) -> Callable[[Ids], Result]:
    """The same function, computed once per list object, which many items share; not once per equal list."""
    known: dict[int, tuple[Ids, Result]] = {}  # the list is kept, so that no other one takes its id

    def cached(ids: Ids) -> Result:
        if id(ids) not in known:
            known[id(ids)] = ids, work(ids)
        return known[id(ids)][1]

    return cached


def positions(ids: Ids) -> dict[str, int]:
    """Each id with its first index in the list."""
    last = len(ids) - 1
    return {name: last - position for position, name in enumerate(reversed(ids))}


class TextLookup:
    """Texts by id, to find those that stand in another text. They are kept by their first letters, then by length."""

    LETTERS = 12  # that are compared first; all of them where a text has fewer

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._letters = min([self.LETTERS, *map(len, texts.values())])
        self._known: dict[str, dict[int, set[str]]] = {}
        for text in texts.values():
            self._known.setdefault(text[: self._letters], {}).setdefault(len(text), set()).add(text)

    def inside(self, text: str) -> list[str]:
        """The ids of the texts that stand in this one, in their order."""
        matches: set[str] = set()
        for position in range(len(text) + 1):
            for length, same_length in self._known.get(text[position : position + self._letters], {}).items():
                matches |= same_length & {text[position : position + length]}
        return [name for name, known_text in self._texts.items() if known_text in matches] if matches else []

"""The schema index: of each relation how many heads it has, of what kinds heads and tails are, and whether a head has one tail or several
at the same time."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

FUNCTIONAL = 0.75  # of heads with one tail, by Laplace's rule of succession: two without an exception, five with one
Tails = Literal["", "one", "moved", "several", "open"]  # of a head: nothing but hearsay, one, one after another, several, people disagree


class Slots(NamedTuple):
    """The kinds of an edge's head and tail: what they are said to be, "number", or "" where nothing tells."""

    head: str
    tail: str


@dataclass
class Schema:
    """A relation as far as it is known. `heads`: the kinds of each head's first edge."""

    heads: dict[str, Slots] = field(default_factory=dict)
    head_kinds: Counter[str] = field(default_factory=Counter)
    tail_kinds: Counter[str] = field(default_factory=Counter)
    tails: Counter[Tails] = field(default_factory=Counter)

    def learn(self, head: str, slots: Slots) -> None:
        """One more head, once."""
        if head not in self.heads:
            self.heads[head] = slots
            self.head_kinds[slots.head] += 1
            self.tail_kinds[slots.tail] += 1

    def score(self, head: str, slots: Slots) -> float:
        """How well an edge fits, from 0 to 1: n / (n + 1), where n is how many other heads had a slot of the same kind, or one of which
        nothing tells; of head and tail the one that fits less."""
        own = self.heads.get(head)
        counts = (
            _like(self.head_kinds, slots.head) - (own is not None and _compatible(own.head, slots.head)),
            _like(self.tail_kinds, slots.tail) - (own is not None and _compatible(own.tail, slots.tail)),
        )
        return min(counts) / (min(counts) + 1)

    @property
    def functional(self) -> bool:
        """Whether a head has one tail at a time. A head that moved from one to another says so twice; where tellers disagree a head says
        nothing, as that is what is to be judged."""
        single, several = self.tails["one"] + 2 * self.tails["moved"], self.tails["several"]
        return (single + 1) / (single + several + 2) >= FUNCTIONAL


def _compatible(kind: str, other: str) -> bool:
    return kind == other or (not kind and other != "number") or (not other and kind != "number")


def _like(kinds: Counter[str], kind: str) -> int:
    if kind:
        return kinds[kind] + (kinds[""] if kind != "number" else 0)
    return kinds.total() - kinds["number"]

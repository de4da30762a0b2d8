"""What a condition is: from an item, what a preset asks for and an index of its world, to the facts that the prompt shows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hippo_core.conditions.index import WorldIndex
from hippo_core.suites.types import Fact, Item

Regime = Literal["immediate", "delayed", "after_sleep"]
Decoding = Literal["short", "plain"]  # how the model is asked: by its chat template and an instruction, or neither
Encoder = Literal["own", "minilm"]  # whose vectors dense retrieval compares: those of the model that answers, or of all-MiniLM-L6-v2


@dataclass(frozen=True)
class Choice:
    """What the model is given for an item: `facts` in the order of the prompt; `ranking`, all taught facts' ids, best first, where
    the condition ranks; `retrieval_ms`, the time of the query alone (NaN where there is none; the index was built before);
    `computed_tokens`, how many tokens a model ran for the query, those of the index left out."""

    facts: tuple[Fact, ...]
    ranking: tuple[str, ...] | None
    retrieval_ms: float
    computed_tokens: float = 0.0


@dataclass(frozen=True)
class Request:
    """One item to choose facts for. A condition sees the facts taught for this item (`item.taught`) and no other."""

    item: Item
    regime: Regime
    k: int | None
    encoder: Encoder | None
    candidates: int | None
    recency: float | None
    decoding: Decoding
    index: WorldIndex

    @property
    def taught(self) -> tuple[Fact, ...]:
        """The taught facts, in order of telling."""
        taught = self.item.taught
        return self.index.once(("taught", taught), lambda: tuple(self.index.facts[fact] for fact in taught))

    def among_taught(self, ids: set[str]) -> tuple[Fact, ...]:
        """Those of the taught facts, in order of telling."""
        places = self.index.positions(self.item.taught)
        return tuple(self.index.facts[fact] for fact in sorted(ids & places.keys(), key=places.__getitem__))


@dataclass(frozen=True)
class Condition:
    """A way to choose. `uses_window`: the regime matters. `settings`: the preset's settings that it reads, with their defaults."""

    choose: Callable[[Request], Choice]
    uses_window: bool
    settings: dict[str, object]

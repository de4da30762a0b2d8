"""What the store keeps of an edge besides its text: who told it, when and how surely, and whether it waits; and what a gate weighs of
it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hippo_core.errors import LabError
from hippo_core.methods.gate_terms import Weighed

PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
WEIGHTS: Mapping[str, float] = {"confidence": 0.5, "schema": 0.3, "novelty": 0.1, "recency": 0.1, "degree": -0.2}
HUB = 64  # edges of a name from which on it counts as a hub; twice as many count in full


@dataclass(frozen=True, slots=True)
class Attestation:
    """That an edge was told: by whom ("" where the text just tells it), when in the order of telling, how surely (0 to 1; None: plainly),
    and whether it is said to have become so."""

    teller: str
    time: int
    confidence: float | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """The payload of a trace. `waits`: it was routed to the episodic traces; a replay that promotes it counts as its first use."""

    tellings: tuple[Attestation, ...]
    waits: bool = False


def retold(tellings: Sequence[Attestation], telling: Attestation) -> tuple[Attestation, ...]:
    """Tellings and one more. Of what one teller says again as surely the first and the last are kept: it counts once, as of its first
    time, and what that one said in between is still taken back by it."""
    same = [one for one in tellings if (one.teller, one.confidence, one.replaces) == (telling.teller, telling.confidence, telling.replaces)]
    between = same[-1] if len(same) > 1 else None
    return (*(one for one in tellings if one is not between), telling)


def confidence(tellings: Sequence[Attestation]) -> float:
    """How sure an edge is: 1 less the chance that each of its tellers errs, who are independent; each counts by the last word, and a plain
    word is sure."""
    last = {one.teller: 1.0 if one.confidence is None else one.confidence for one in tellings}
    return 1.0 - math.prod(1.0 - sure for sure in last.values())


@dataclass(frozen=True)
class EdgeCodec:
    """The codec of edges: JSON, `{"waits": false, "tellings": [["Lea", 3, 0.6, false]]}`."""

    settings: Mapping[str, Any] = field(default_factory=lambda: {"payload": "edge"})

    def check(self, payload: Any) -> None:
        if not isinstance(payload, Edge) or not payload.tellings:
            raise LabError(f"expected an edge with one telling or more, got {payload!r}; teach the relational memory, which makes it")

    def encode(self, payload: Edge) -> bytes:
        return PLAIN.encode(self.to_json(payload)).encode()

    def decode(self, data: bytes) -> Edge:
        return self.from_json(json.loads(data))

    def to_json(self, payload: Edge, dense: bool = False) -> dict[str, Any]:
        tellings = [[one.teller, one.time, one.confidence, one.replaces] for one in payload.tellings]
        return {"waits": payload.waits, "tellings": tellings}

    def from_json(self, values: Mapping[str, Any]) -> Edge:
        try:
            tellings = tuple(Attestation(str(who), int(time), _share(sure), bool(new)) for who, time, sure, new in values["tellings"])
            edge = Edge(tellings, bool(values["waits"]))
        except (KeyError, TypeError, ValueError):
            raise LabError(f"an edge is kept as waits and tellings, got {str(values)[:80]}; teach anew") from None
        self.check(edge)
        return edge


def _share(sure: Any) -> float | None:
    if sure is None or 0 <= sure <= 1:
        return sure
    raise ValueError(sure)


@dataclass(frozen=True, slots=True)
class EdgeTerms(Weighed):
    """What is known of an edge when it is told, each from 0 to 1: how sure its tellers are together (`confidence`); how well it fits what
    its relation was told of (`schema`); `novelty`, 0 where the same edge is there, .5 where another one joins the two names, else 1;
    `recency`, g / (g + 1), g statements after one of its names was last told of, 1 for names that are new; `degree`, how far the larger of
    its names is beyond `HUB` edges. S is their weighted sum; an edge that S >= threshold is inserted, another waits. Nothing is dropped."""

    weights: ClassVar[Mapping[str, float]] = WEIGHTS
    confidence: float
    schema: float
    novelty: float
    recency: float
    degree: float


def recency(gap: int | None) -> float:
    """Of names last told of `gap` statements ago; None for new ones."""
    return 1.0 if gap is None else gap / (gap + 1)

"""What the store keeps of an edge besides its text (who told it, when, with what confidence; whether it is pending), and the terms
by which a gate weighs an edge, each from 0 to 1 with a weight, and their sum S."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hippo_core.errors import LabError

ROUNDING = 1e-9


class Weighed:
    """The base of such terms: a dataclass with a field for each of `weights`."""

    __slots__ = ()
    weights: ClassVar[Mapping[str, float]]

    @property
    def raw(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.weights}

    @property
    def contributions(self) -> dict[str, float]:
        """What each adds to S."""
        return {name: weight * getattr(self, name) for name, weight in self.weights.items()}

    @property
    def score(self) -> float:
        """S."""
        return math.fsum(self.contributions.values())

    def passes(self, threshold: float) -> bool:
        """Whether S is at least the threshold."""
        return self.score >= threshold - ROUNDING


def hub(degree: int, usual: int) -> float:
    """How far a degree exceeds the usual one: 0 up to it, 1 from twice as many on."""
    return min(1.0, max(0, degree - usual) / usual)


PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
WEIGHTS: Mapping[str, float] = {"confidence": 0.5, "schema": 0.3, "novelty": 0.1, "recency": 0.1, "degree": -0.2}
HUB = 64  # edges of a name from which on it counts as a hub; twice as many count in full


@dataclass(frozen=True, slots=True)
class Attestation:
    """One time that an edge was told."""

    teller: str  # "": the text itself
    time: int
    confidence: float | None = None  # 0 to 1; None: plainly
    replaces: bool = False  # what was so before


@dataclass(frozen=True, slots=True)
class Edge:
    """The payload of a trace. `is_pending`: it was routed to the episodic traces; a replay that promotes it counts as its first use."""

    attestations: tuple[Attestation, ...]
    is_pending: bool = False


def add_attestation(attestations: Sequence[Attestation], attestation: Attestation) -> tuple[Attestation, ...]:
    """Add an attestation. Where a teller repeats it with the same confidence, the first and the last are kept: it counts once, from its
    first time on, and overrules what the teller said in between."""
    same = [
        earlier
        for earlier in attestations
        if (earlier.teller, earlier.confidence, earlier.replaces) == (attestation.teller, attestation.confidence, attestation.replaces)
    ]
    between = same[-1] if len(same) > 1 else None
    return (*(earlier for earlier in attestations if earlier is not between), attestation)


def confidence(attestations: Sequence[Attestation]) -> float:
    """1 minus the probability that all its independent tellers err; each teller's last attestation counts, and a plain one counts 1."""
    last = {attestation.teller: 1.0 if attestation.confidence is None else attestation.confidence for attestation in attestations}
    return 1.0 - math.prod(1.0 - confidence for confidence in last.values())


@dataclass(frozen=True)
class EdgeCodec:
    """The codec of edges: JSON, `{"waits": false, "tellings": [["Lea", 3, 0.6, false]]}`."""

    settings: Mapping[str, Any] = field(default_factory=lambda: {"payload": "edge"})

    def check(self, payload: Any) -> None:
        if not isinstance(payload, Edge) or not payload.attestations:
            raise LabError(f"expected an edge with one telling or more, got {payload!r}; teach the relational memory, which makes it")

    def encode(self, payload: Edge) -> bytes:
        return PLAIN.encode(self.to_json(payload)).encode()

    def decode(self, data: bytes) -> Edge:
        return self.from_json(json.loads(data))

    def to_json(self, payload: Edge, dense: bool = False) -> dict[str, Any]:
        attestations = [
            [attestation.teller, attestation.time, attestation.confidence, attestation.replaces] for attestation in payload.attestations
        ]
        return {"waits": payload.is_pending, "tellings": attestations}

    def from_json(self, values: Mapping[str, Any]) -> Edge:
        try:
            attestations = tuple(
                Attestation(str(who), int(time), _share(confidence), bool(new)) for who, time, confidence, new in values["tellings"]
            )
            edge = Edge(attestations, bool(values["waits"]))
        except (KeyError, TypeError, ValueError):
            raise LabError(f"an edge is kept as waits and tellings, got {str(values)[:80]}; teach anew") from None
        self.check(edge)
        return edge


def _share(confidence: Any) -> float | None:
    if confidence is None or 0 <= confidence <= 1:
        return confidence
    raise ValueError(confidence)


@dataclass(frozen=True, slots=True)
class EdgeTerms(Weighed):
    """What a gate knows of an edge, each from 0 to 1. S is their weighted sum: an edge of S >= threshold is inserted, another is pending.
    Nothing is dropped."""

    weights: ClassVar[Mapping[str, float]] = WEIGHTS
    confidence: float  # of all its tellers
    schema: float  # how well it fits its relation
    novelty: float  # 0 where the graph has the same edge, .5 where another edge joins the two names, else 1
    recency: float  # g / (g + 1), g statements after one of its names was last mentioned, 1 for new names
    degree: float  # how far the larger of its names exceeds `HUB` edges


def recency(gap: int | None) -> float:
    """Of names last mentioned `gap` statements ago; None for new ones."""
    return 1.0 if gap is None else gap / (gap + 1)

"""The gate of the graph: which statements become edges at once, and which wait among the episodic traces.

    S = .5 confidence + .3 schema + .1 novelty + .1 recency - .2 degree          an edge that S >= threshold is inserted, another is routed

What is told again is added to its edge, whatever S. Nothing is dropped. The terms are those of the plan that the lab was made from, which
adds them up as .6, .5, .2 and -.4 (novelty and schema in turn in the place of the second); there a new edge passes every threshold of its
sweep (.5, .6, .7). Here S of what is told plainly lies between .6 and 1, so that the three part what is vague from what is hearsay, and
what is sure from what fits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hippo_core.methods.gate_terms import Weighed

WEIGHTS: Mapping[str, float] = {"confidence": 0.5, "schema": 0.3, "novelty": 0.1, "recency": 0.1, "degree": -0.2}
HUB = 64  # edges of a name from which on it counts as a hub; twice as many count in full


@dataclass(frozen=True, slots=True)
class EdgeTerms(Weighed):
    """What is known of an edge when it is told, each from 0 to 1.

    Args:
        confidence: how sure its tellers are, together.
        schema: how well it fits what its relation was told of.
        novelty: 0 where the same edge is there, .5 where another one joins the two names, else 1.
        recency: g / (g + 1), g statements after one of its names was last told of; 1 for names that are new. A burst counts less.
        degree: how far the larger of its names is beyond `HUB` edges.
    """

    weights: ClassVar[Mapping[str, float]] = WEIGHTS
    confidence: float
    schema: float
    novelty: float
    recency: float
    degree: float


def recency(gap: int | None) -> float:
    """Of names last told of `gap` statements ago; None for new ones."""
    return 1.0 if gap is None else gap / (gap + 1)

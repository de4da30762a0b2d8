"""Order facts by their scores, with a recency rule: a fact that looks like an earlier version of a later one is ranked lower.

A later fact replaces an earlier one to the extent that it contains what the question matches in the earlier one and is written similarly.
"""

from collections.abc import Sequence, Set

import numpy as np

from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.world_index import WorldIndex

AMONG = 20  # facts that are compared with each other; a re-ranking looks at as many
COVERED, SIMILAR = 8, 2  # powers of the two shares; the best of 4 and 8, and of 1, 2 and 4, on validation worlds for all rags together


def standardised(scores: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
    """The z-scores among those `allowed` bool [N] (None: all), float64 [N]; zeros where these are all the same."""
    scores = scores.astype(np.float64)
    among = scores if allowed is None else scores[allowed]
    spread = among.std() if len(among) else 0.0
    return (scores - among.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def ranked(scores: np.ndarray) -> list[int]:
    """The positions from the highest score to the lowest. Scores are rounded to six decimals; ties go to the lower position."""
    return np.argsort(-np.round(scores.astype(np.float64), 6), kind="stable").tolist()


def superseded(cue: Set[str], facts: Sequence[Set[str]]) -> np.ndarray:
    """How much each fact, in order of telling, looks as if a later one replaced it, from 0 to 1 [facts].

    It is the maximum over later facts of covered^8 alike^2: `covered` is the share of the cue's terms in the fact that the later one has
    too, `similar` the number of terms in both as a share of the shorter one's.
    """
    shares = [max((supersedes(cue, fact, later) for later in facts[position + 1 :]), default=0.0) for position, fact in enumerate(facts)]
    return np.array(shares, dtype=np.float64)


def latest_first(
    index: WorldIndex, taught: tuple[str, ...], question: str, order: list[int], scores: np.ndarray, recency: float | None
) -> list[int]:
    """All positions, best first, after the recency rule is applied to the best `AMONG` of `order`. `scores` are standardised; `recency` is
    how much a unit of `superseded` is subtracted (None or 0: nothing)."""
    if not recency:
        return order
    terms = index.once(("recency", taught), lambda: [frozenset(grams(index.passages[source].text)) for source in taught])
    best = sorted(order[:AMONG])
    adjusted = scores[best] - recency * superseded(frozenset(grams(question)), [terms[position] for position in best])
    return [*(best[position] for position in np.argsort(-np.round(adjusted, 6), kind="stable")), *order[AMONG:]]


def supersedes(cue: Set[str], fact: Set[str], later: Set[str]) -> float:
    """How much a fact looks as if this later one replaced it, from 0 to 1 (`superseded`)."""
    matches, both = cue & fact, fact & later
    return (len(matches & later) / len(matches)) ** COVERED * (len(both) / min(len(fact), len(later))) ** SIMILAR if matches else 0.0

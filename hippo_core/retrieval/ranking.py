"""From scores to an order, and a recency rule: a fact that looks like an earlier version of one told later is put behind.

A ranking by likeness alone cannot tell the last mention of something from the mentions before it. Of the best facts each is compared with
those of them that were told later, by the pieces of their words; nothing but the order of telling is added to what retrieval knows. A later
fact takes an earlier one's place as far as it holds what the question finds in the earlier one, and is written alike.
"""

from collections.abc import Sequence, Set

import numpy as np

from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.world_index import WorldIndex

AMONG = 20  # facts that are compared with each other, as many as a re-ranking looks at
COVERED, ALIKE = 8, 2  # powers of the two shares: of 4 and 8, and of 1, 2 and 4, the best on validation worlds for all rags together


def standardised(scores: np.ndarray) -> np.ndarray:
    """z-scores [N] in float64; zeros where all scores are the same."""
    scores = scores.astype(np.float64)
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def ranked(scores: np.ndarray) -> list[int]:
    """Positions from the highest score to the lowest, compared to six decimals; of equals the first."""
    return np.argsort(-np.round(scores.astype(np.float64), 6), kind="stable").tolist()


def superseded(cue: Set[str], facts: Sequence[Set[str]]) -> np.ndarray:
    """How much each of these facts [C] looks as if one of them that was told later took its place: 0 where none was, at most 1.

    The highest, over facts told later, of covered^8 alike^2: of the cue's terms that the fact holds, the share that the later one holds
    too; and of the terms of the shorter of both, the share that both hold.

    Args:
        cue: the terms of the question.
        facts: the terms of each fact, in order of telling.
    """
    taken = [max((_supersedes(cue, fact, later) for later in facts[position + 1 :]), default=0.0) for position, fact in enumerate(facts)]
    return np.array(taken, dtype=np.float64)


def latest_first(
    index: WorldIndex, taught: tuple[str, ...], question: str, order: list[int], scores: np.ndarray, recency: float | None
) -> list[int]:
    """The positions `order`, best first, with the best `AMONG` ordered anew: by their `scores`, standardised [N], less `recency` for each
    unit of `superseded`. As it was where `recency` is None or 0."""
    if not recency:
        return order
    best, terms = sorted(order[:AMONG]), _terms(index, taught)
    adjusted = scores[best] - recency * superseded(frozenset(grams(question)), [terms[position] for position in best])
    return [*(best[position] for position in np.argsort(-np.round(adjusted, 6), kind="stable")), *order[AMONG:]]


def _supersedes(cue: Set[str], fact: Set[str], later: Set[str]) -> float:
    matches, both = cue & fact, fact & later
    return (len(matches & later) / len(matches)) ** COVERED * (len(both) / min(len(fact), len(later))) ** ALIKE if matches else 0.0


def _terms(index: WorldIndex, taught: tuple[str, ...]) -> list[Set[str]]:
    """The pieces of the words of each taught passage."""
    return index.once(("recency", taught), lambda: [frozenset(grams(index.passages[source].text)) for source in taught])

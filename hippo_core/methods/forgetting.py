"""What a memory forgets as it is taught: stale traces expire, and of near-equal traces the latest stays with the evidence of all.

Two traces are near-equal where the character n-grams of their texts have a cosine of at least `merge`, one teller says the same names and
numbers in the same order, and words of one alone are articles or spelt much like words of the other. Pinned traces stay.
"""

from collections.abc import Collection, Iterable, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hippo_core.methods.base import Forgetting
from hippo_core.methods.relational.clauses import spelling
from hippo_core.methods.relational.mentions import NEAR, mentions
from hippo_core.store import TraceStore
from hippo_core.store.trace import Trace
from hippo_core.text import words

SIZE, COLUMNS = 4, 2048  # characters of an n-gram; what n-grams are hashed to
ARTICLES = frozenset({"a", "an", "the"})


def forget(store: TraceStore, world: str, settings: Forgetting, new: Collection[int]) -> None:
    """Expire the stale traces of a world, and merge earlier traces into those with the ids `new`. Can be undone (`rollback`)."""
    if settings.ttl is not None:
        store.expire(settings.ttl, world)
    if settings.merge is not None and (groups := near_equal(store.traces(world), settings.merge, new)):
        merge(store, groups)


def near_equal(traces: Sequence[Trace], cosine: float, new: Collection[int]) -> list[list[Trace]]:
    """Groups of near-equal traces, in order of telling; the last of each is among `new`, and no trace is in two groups."""
    vectors = grams([trace.text for trace in traces])
    groups: dict[int, list[Trace]] = {}  # by the position of the last trace
    merged = set[int]()
    for last, trace in enumerate(traces):
        if trace.id in new:
            near = np.flatnonzero(vectors[:last] @ vectors[last] >= cosine - 1e-6).tolist()
            earlier = [at for at in near if at not in merged and not traces[at].pinned and _say_the_same(traces[at], trace)]
            groups[last] = [*(one for at in earlier for one in groups.pop(at, [traces[at]])), trace]
            merged.update(earlier)
    return [group for group in groups.values() if len(group) > 1]


def merge(store: TraceStore, groups: Iterable[Sequence[Trace]]) -> set[int]:
    """Merge each group into its last trace, which gets the evidence of all. Returns the ids of those deleted."""
    gone = set[int]()
    with store.maintenance("merge"):
        for *earlier, last in groups:
            if earlier:
                store.aggregate(last.id, sum(trace.evidence for trace in earlier))
                gone |= {trace.id for trace in earlier}
        store.delete(list(gone))
    return gone


def grams(texts: Sequence[str]) -> NDArray[np.float32]:
    """The counts of character n-grams of each text, hashed, of length 1: float32 [N, COLUMNS]."""
    rows = np.zeros((len(texts), COLUMNS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        line = f" {' '.join(words(text) or [text])} ".ljust(SIZE)
        np.add.at(row, [crc32(line[at : at + SIZE].encode()) % COLUMNS for at in range(len(line) - SIZE + 1)], 1)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _say_the_same(trace: Trace, other: Trace) -> bool:
    """Whether two traces are of one teller and differ in articles and spelling alone."""
    own, others = ([word for word in words(one.text) if word not in ARTICLES] for one in (trace, other))
    lone, lone_others = [word for word in own if word not in others], [word for word in others if word not in own]
    in_order = own == others or sorted(own) != sorted(others)
    spelt_alike = all(
        any(spelling(word, near) >= NEAR for near in those) for these, those in ((lone, lone_others), (lone_others, lone)) for word in these
    )
    return trace.teller == other.teller and in_order and spelt_alike and _names(trace) == _names(other)


def _names(trace: Trace) -> list[str]:
    return [mention.key for mention in mentions(trace.text)]

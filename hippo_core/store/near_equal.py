"""Near-equal traces: the character n-grams of their texts have a high cosine, one teller says the same words in the same order, and words
that differ are misspellings of each other. Articles do not count; names and numbers must be equal."""

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hippo_core.store.trace import Trace
from hippo_core.text import words

SIZE, COLUMNS = 4, 2048  # characters of an n-gram; what n-grams are hashed to
ARTICLES = frozenset({"a", "an", "the"})
MISSPELT = 0.8  # the share of equal characters above which two words of one first letter are one


def near_equal(traces: Sequence[Trace], cosine: float, new: Collection[int]) -> list[list[Trace]]:
    """Groups of near-equal traces, in order of telling; the last of each is among the ids `new`, the others are not pinned, and no trace is
    in two groups."""
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


def grams(texts: Sequence[str]) -> NDArray[np.float32]:
    """The counts of character n-grams of each text, hashed, of length 1: float32 [N, COLUMNS]."""
    rows = np.zeros((len(texts), COLUMNS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        line = f" {' '.join(words(text) or [text])} ".ljust(SIZE)
        np.add.at(row, [crc32(line[at : at + SIZE].encode()) % COLUMNS for at in range(len(line) - SIZE + 1)], 1)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _say_the_same(trace: Trace, other: Trace) -> bool:
    own, others = ([word for word in words(one.text) if word not in ARTICLES] for one in (trace, other))
    lone, lone_others = [word for word in own if word not in others], [word for word in others if word not in own]
    common, common_others = [word for word in own if word in others], [word for word in others if word in own]
    if trace.teller != other.teller or common != common_others or len(lone) != len(lone_others):
        return False
    small = set(re.findall(r"[^\W\d]+", f"{trace.text} {other.text}"))  # words as they are written: a name is not in small letters
    return {*lone, *lone_others} <= small and all(map(_misspelt, lone, lone_others))


def _misspelt(word: str, other: str) -> bool:
    return word[0] == other[0] and SequenceMatcher(None, word, other, autojunk=False).ratio() > MISSPELT

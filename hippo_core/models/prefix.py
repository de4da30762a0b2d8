"""What prompts begin with in common, and batches of prompts in which it is run once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hippo_core.models.kv import KV, encode, keeps_kv_only, tokens_of
from hippo_core.models.language_model import LanguageModel

A_PASS = 32  # what a forward pass costs before its first token, in tokens: the weights are read (30-60 ms of a 135M model on 2 cores)


@dataclass(frozen=True)
class PrefixBatch:
    """Rows that are run together, by their numbers. Each row runs its last `width` tokens. A stem is a number of tokens and the rows that
    begin with the same so many: it is run once for them, behind the trunk. `cost` is in tokens, padding and passes included."""

    rows: tuple[int, ...]
    stems: tuple[tuple[int, tuple[int, ...]], ...]
    width: int
    cost: int


@dataclass(frozen=True)
class Plan:
    """How to run rows of token ids: their first `trunk` tokens are common to all and run once, then batch after batch."""

    trunk: int
    batches: tuple[PrefixBatch, ...]

    @property
    def cost(self) -> int:
        """Tokens to run, padding and passes included."""
        return self.trunk + sum(batch.cost for batch in self.batches)


class Shared:
    """Rows of token ids with what they share run once: the trunk now, a batch's stems when the batch is split."""

    def __init__(self, lm: LanguageModel, rows: Sequence[list[int]], batch_size: int, keep: Sequence[int] | None = None) -> None:
        self._lm, self._rows = lm, rows
        self._plan = plan(rows, batch_size, keep if keeps_kv_only(lm) else [len(row) for row in rows])
        self.batches = self._plan.batches
        self._trunk = encode(lm, [rows[0][: self._plan.trunk]]) if self._plan.trunk else []

    def split(self, batch: PrefixBatch) -> tuple[list[list[int]], list[list[KV]] | None]:
        """What is left to run of each of a batch's rows, and the KV that stands before it (None where nothing stands before any)."""
        tails = [self._rows[row][-batch.width :] for row in batch.rows]
        stems = self._stems(batch)
        before = [
            _first(stems.get(row, self._trunk), len(self._rows[row]) - len(tail)) for row, tail in zip(batch.rows, tails, strict=True)
        ]
        return tails, before if self._trunk or stems else None

    def computed(self, batch: PrefixBatch, row: int) -> float:
        """How many tokens are run for a row of a batch, each divided by the number of rows that it is run for."""
        trunk = self._plan.trunk
        stems = sum((length - trunk) / len(members) for length, members in batch.stems if row in members)
        return trunk / len(self._rows) + stems + min(batch.width, len(self._rows[row]))

    def _stems(self, batch: PrefixBatch) -> dict[int, list[KV]]:
        """By row, the KV of trunk and stem."""
        if not batch.stems:
            return {}
        trunk = self._plan.trunk
        runs = [self._rows[members[0]][trunk:length] for length, members in batch.stems]
        stem_kvs = encode(self._lm, runs, self._trunk[0] if self._trunk else None)
        return {row: [*self._trunk, kv] for kv, (_, members) in zip(stem_kvs, batch.stems, strict=True) for row in members}


def _first(kvs: Sequence[KV], tokens: int) -> list[KV]:
    """The first `tokens` tokens of KV that stand one behind the other."""
    cut = []
    for kv in kvs:
        cut.append(kv[:, :, :, :tokens])
        tokens = max(0, tokens - tokens_of(kv))
    return cut


def plan(rows: Sequence[list[int]], batch_size: int, keep: Sequence[int] | None = None) -> Plan:
    """Batches of at most `batch_size` rows, the cheaper of two ways: rows of similar length together, or rows that begin the same. The last
    `keep[r]` tokens of row r (default 1) are run for that row alone, whatever it shares."""
    keep = keep or [1] * len(rows)
    free = [len(row) - own for row, own in zip(rows, keep, strict=True)]  # how much of a row may be shared
    by_text = sorted(range(len(rows)), key=lambda row: rows[row])
    trunk = min(_common(rows[by_text[0]], rows[by_text[-1]]), *free) if len(rows) > 1 else 0
    trunk = trunk if trunk * (len(rows) - 1) > A_PASS else 0
    by_length = sorted(range(len(rows)), key=lambda row: (-len(rows[row]), row))
    plans = [
        Plan(trunk, tuple(_batch(rows, free, trunk, order[start : start + batch_size]) for start in range(0, len(order), batch_size)))
        for order in (by_length, by_text)
    ]
    return min(plans, key=lambda made: made.cost)


def _batch(rows: Sequence[list[int]], free: Sequence[int], trunk: int, members: Sequence[int]) -> PrefixBatch:
    """The cheapest way to run these rows together: groups of neighbours that share at least so many tokens, for every "so many"."""
    ordered = sorted(members, key=lambda row: rows[row])
    shared = [_common(rows[a], rows[b]) for a, b in pairwise(ordered)]
    options = [_grouped(rows, free, trunk, _groups(ordered, shared, least)) for least in {*shared, math.inf} if least > trunk]
    return min(options, key=lambda batch: (batch.cost, len(batch.stems)))


def _grouped(rows: Sequence[list[int]], free: Sequence[int], trunk: int, groups: Sequence[list[int]]) -> PrefixBatch:
    """A batch of these groups, each with what all of it have in common as its stem."""
    stems, width = [], 0
    for group in groups:
        length = min(_common(rows[group[0]], rows[group[-1]]), *(free[row] for row in group)) if len(group) > 1 else trunk
        if length > trunk:
            stems.append((length, tuple(group)))
        width = max(width, *(len(rows[row]) - max(length, trunk) for row in group))
    members = tuple(row for group in groups for row in group)
    extra = A_PASS + len(stems) * (max(length for length, _ in stems) - trunk) if stems else 0
    return PrefixBatch(members, tuple(stems), width, extra + len(members) * width)


def _groups(ordered: Sequence[int], shared: Sequence[int], least: float) -> list[list[int]]:
    """Sorted rows, cut where two neighbours share less than `least` tokens."""
    groups = [[ordered[0]]]
    for row, tokens in zip(ordered[1:], shared, strict=True):
        if tokens < least:
            groups.append([])
        groups[-1].append(row)
    return groups


def _common(a: list[int], b: list[int]) -> int:
    """How many tokens two rows begin with in common."""
    same, most = 0, min(len(a), len(b))
    while same < most:
        middle = (same + most + 1) // 2
        same, most = (middle, most) if a[same:middle] == b[same:middle] else (same, middle - 1)
    return same

"""Repair from the episodic store: the damaged cache is the cue, what is recalled shows where the damage is, and is put back.

    store    each span of 16 tokens is a trace with a sparse key and its keys and values, in the lab's trace store
    recall   the stored cache that shares most with the damaged one; nothing says which it is
    verify   it must be liker to the damaged one than clean caches of different texts are to each other; else nothing is done
    detect   vectors that are not what was recalled, but for the store's rounding
    repair   of the spans with most of them, `budget` of all spans, these vectors are put back

A key is computed from keys and values themselves, so that it can be computed again from a damaged cache: their mean over the span's tokens,
standardised by what clean text is like, its largest entries by k-WTA (kernels/kwta). A damaged cache is a cue of as many parts as it has
spans; the cache is recalled whose traces, at the same places, share most with all of them (kernels/sparse_recall).

Nothing reads where the damage is, but `Gold`, a bound. Controls choose as many spans otherwise, as RepairKV's Random-K and Oldest-K do.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load, save
from torch import Tensor

from hippo_core.kernels.code import Code
from hippo_core.kernels.kwta import kwta
from hippo_core.kernels.sparse_recall import sparse_recall
from hippo_core.models import checksums
from hippo_core.models.int8_kv import Int8KV
from hippo_core.models.kv import KV, StoredKV, restored
from hippo_core.models.kv_storage import Precision
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.passage_kv import rounded
from hippo_core.protocols.cache.corruption import generator_of
from hippo_core.protocols.cache.defences.base import CleanStatistics, Defence, DefenceContext, DefenceInput
from hippo_core.store import TraceStore
from hippo_core.store.codec import NoPayload
from hippo_core.store.identity import Identity
from hippo_core.store.trace import Trace

PAIRS = 200  # of different clean texts, that say how alike two may be
SPAN = 16  # tokens
WINNERS = 96
CLIPPED = 3.0  # standard deviations: a feature that a fault made huge says no more than one that is unusual
NEAREST = 8  # traces a span that may vote
WORLD, SESSION = "cache", "cache"


@dataclass(frozen=True, eq=False)
class CacheSpan:
    """What is kept of a span: its key, a code of one row, and its keys and values."""

    key: Code
    kv: StoredKV


class SpanCodec(NoPayload):
    """Spans as safetensors. Their store is a folder that goes with the defence: nothing of it is written as JSON."""

    def check(self, payload: CacheSpan) -> None:
        """Spans are made here alone."""

    def encode(self, payload: CacheSpan) -> bytes:
        kv = payload.kv.tensors if isinstance(payload.kv, Int8KV) else {"kv": payload.kv}
        code = {"indices": payload.key.indices, "values": payload.key.values}
        return save({**code, **{name: part.contiguous() for name, part in kv.items()}})

    def decode(self, data: bytes) -> CacheSpan:
        tensors = load(data)
        key = Code(tensors.pop("indices"), tensors.pop("values"))
        return CacheSpan(key, Int8KV.of_tensors(tensors) if self.settings["precision"] == "int8" else tensors["kv"])


class SpanStore:
    """The traces of caches, in a store of the lab's in `folder`."""

    def __init__(self, lm: LanguageModel, clean: CleanStatistics, folder: Path, precision: Precision) -> None:
        self.lm, self.clean = lm, clean
        self.precision: Precision = precision
        self.codec = SpanCodec({"span": SPAN, "winners": WINNERS, "precision": precision})
        made_by = "hippo_core.protocols.cache.defences.episodic:SpanStore"
        identity = Identity(lm.spec.name, checksums.weights(lm.spec.name), made_by, self.codec)
        self.store = TraceStore.create(folder, SESSION, identity)
        self._index: tuple[list[Trace], Code] | None = None

    def write(self, kv: KV, address: str, tokens: Sequence[int]) -> int:
        """Keep a cache span by span; the bytes of their payloads."""
        traces, codes = [], self.keys(kv)
        for number, first in enumerate(range(0, kv.shape[3], SPAN)):
            part = rounded(kv[:, :, :, first : first + SPAN].float().cpu(), self.precision)
            span = CacheSpan(Code(codes.indices[number : number + 1], codes.values[number : number + 1]), part)
            text = self.lm.tokenizer.decode(list(tokens[first : first + SPAN])).strip() or "(blank)"
            traces.append(Trace(WORLD, f"{address}#{number}", text, time=number, payload=span))
        self.store.append(traces)
        self._index = None
        return sum(len(self.codec.encode(trace.payload)) for trace in traces)

    def keys(self, kv: KV) -> Code:
        """The key of each span of a cache, damaged or not."""
        means = torch.stack([part.mean(3).flatten() for part in self.standardised(kv).split(SPAN, dim=3)])
        return kwta(means, WINNERS)

    def recall(self, kv: KV) -> str:
        """The address of the cache that is most similar to a damaged one; empty where no trace shares anything with it."""
        traces, codes = self._read()
        cues = self.keys(kv)
        matches = sparse_recall(codes, cues, NEAREST)
        votes: dict[str, int] = defaultdict(int)
        for number, (ids, scores) in enumerate(zip(matches.ids.tolist(), matches.scores.tolist(), strict=True)):
            for row, score in zip(ids, scores, strict=True):
                if row >= 0 and traces[row].time == number:
                    votes[traces[row].source.rpartition("#")[0]] += score
        return max(votes, key=lambda address: (votes[address], address)) if votes else ""

    def stored(self, address: str, tokens: int) -> KV | None:
        """The cache of an address as it is kept, [L, 2, H, T, D]; None where it has not as many tokens."""
        own = [trace for trace in self._read()[0] if trace.source.rpartition("#")[0] == address]
        spans = [trace.payload.kv for trace in sorted(own, key=lambda trace: trace.time)]
        if sum(span.shape[3] for span in spans) != tokens:
            return None
        return torch.cat([restored(span, torch.float32) for span in spans], 3)

    def _read(self) -> tuple[list[Trace], Code]:
        """All traces as the store holds them, and their keys as one code."""
        if self._index is None:
            traces = self.store.traces(WORLD)
            none = Code(torch.zeros(0, WINNERS, dtype=torch.int32), torch.zeros(0, WINNERS, dtype=torch.int8))
            keys = [none, *(trace.payload.key for trace in traces)]
            codes = Code(torch.cat([key.indices for key in keys]), torch.cat([key.values for key in keys]))
            self._index = traces, codes
        return self._index

    def standardised(self, kv: KV) -> Tensor:
        """Features as they lie among those of clean text, in standard deviations, at most CLIPPED; what is no number is the mean."""
        return ((kv.float().cpu() - self.clean.mean) / self.clean.spread).nan_to_num(0.0, 0.0, 0.0).clamp(-CLIPPED, CLIPPED)


def cosine(a: Tensor, b: Tensor) -> float:
    """The cosine of two tensors of one shape; 0 where one is all zeros."""
    a, b = a.flatten(), b.flatten()
    return float(torch.dot(a, b) / (a.norm() * b.norm()).clamp(min=1e-9))


def differs(kv: KV, other: KV, precision: Precision) -> Tensor:
    """Which vectors of a cache are not those of another but for the other's rounding: bool [L, 2, H, T, 1]."""
    tolerance = {"int8": 0.1, "bfloat16": 0.01, "model": 1e-4}[precision]
    away = (kv.float() - other.float()).norm(dim=-1, keepdim=True) / other.float().norm(dim=-1, keepdim=True).clamp(min=1e-9)
    return ~(away <= tolerance)


class Episodic(Defence):
    name = "episodic"

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        self._folder = TemporaryDirectory(prefix="hippo-cache-")
        self.store = SpanStore(setting.lm, setting.clean, Path(self._folder.name), setting.precision)
        self.typical_similarity = typical_similarity(self.store, setting.known)

    def write(self, kv: KV, address: str, tokens: Sequence[int]) -> int:
        return self.store.write(kv, address, tokens)

    def repair(self, damaged: DefenceInput) -> KV:
        address = self.recalled(damaged)
        kept = self.store.stored(address, damaged.kv.shape[3]) if address else None
        if kept is None or not self.trusts(damaged, kept):
            return damaged.kv
        wrong = differs(damaged.kv, kept, self.setting.precision)
        spans = ceil(kept.shape[3] / SPAN)
        chosen = torch.zeros(spans, dtype=torch.bool, device=wrong.device)
        chosen[self.ranked(damaged, wrong)[: ceil(self.setting.budget * spans)]] = True
        return torch.where(wrong & chosen.repeat_interleave(SPAN)[: kept.shape[3]].view(1, 1, 1, -1, 1), kept.to(damaged.kv), damaged.kv)

    def recalled(self, damaged: DefenceInput) -> str:
        """The address of the cache that is put back."""
        return self.store.recall(damaged.kv)

    def trusts(self, damaged: DefenceInput, kept: KV) -> bool:
        """Whether what was recalled is the damaged cache as it was."""
        return cosine(self.store.standardised(damaged.kv), self.store.standardised(kept)) > self.typical_similarity

    def ranked(self, damaged: DefenceInput, wrong: Tensor) -> Tensor:
        """The numbers of the spans in the order in which they are put back, as many as the budget allows: the worst first."""
        return by_span(wrong).argsort(descending=True, stable=True)


class Random(Episodic):
    """As many spans, drawn."""

    name = "episodic_random"

    def ranked(self, damaged: DefenceInput, wrong: Tensor) -> Tensor:
        return torch.randperm(len(by_span(wrong)), generator=generator_of("spans", self.setting.seed, damaged.address))


class Oldest(Episodic):
    """The oldest spans."""

    name = "episodic_oldest"

    def ranked(self, damaged: DefenceInput, wrong: Tensor) -> Tensor:
        return torch.arange(len(by_span(wrong)))


class Gold(Episodic):
    """Told which cache it is and where the damage is: the bound of what the store can bring."""

    name = "episodic_gold"
    uses_oracle_mask = True

    def recalled(self, damaged: DefenceInput) -> str:
        return damaged.address

    def trusts(self, damaged: DefenceInput, kept: KV) -> bool:
        return True

    def ranked(self, damaged: DefenceInput, wrong: Tensor) -> Tensor:
        return by_span(damaged.mask).argsort(descending=True, stable=True)


def by_span(mask: Tensor) -> Tensor:
    """The damaged vectors of each span of a mask [L, 2, H, T, 1]: [S]."""
    by_token = mask.float().sum((0, 1, 2, 4)).cpu()
    return torch.stack([part.sum() for part in by_token.split(SPAN)])


def typical_similarity(store: SpanStore, known: Sequence[KV]) -> float:
    """The similarity that 99 in 100 pairs of clean caches of different texts stay below."""
    likenesses = []
    for a, b in islice(combinations([store.standardised(kv) for kv in known], 2), PAIRS):
        tokens = min(a.shape[3], b.shape[3])
        likenesses.append(cosine(a[:, :, :, :tokens], b[:, :, :, :tokens]))
    return float(torch.tensor(likenesses or [0.0]).quantile(0.99))

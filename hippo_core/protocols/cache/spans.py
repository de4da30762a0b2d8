"""The episodic store of a cache: each span of 16 tokens is a trace with a sparse key and its keys and values, in the lab's trace store.

The key is computed from the keys and values themselves, so that it can be computed again from a damaged cache: their mean over the span's
tokens, standardised by what clean text is like, its largest entries by k-WTA (kernels/kwta). A damaged cache is a cue of as many parts as
it has spans; the cache is recalled whose traces, at the same places, share most with all of them (kernels/sparse_recall).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.kernels.code import Code
from hippo_core.kernels.kwta import kwta
from hippo_core.kernels.sparse_recall import sparse_recall
from hippo_core.models import checksums
from hippo_core.models.int8_kv import Int8KV
from hippo_core.models.kv import KV, HeldKV, restored
from hippo_core.models.kv_storage import Precision
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.passage_kv import rounded
from hippo_core.protocols.cache.defences.base import CleanStatistics
from hippo_core.store import TraceStore
from hippo_core.store.identity import Identity
from hippo_core.store.trace import Trace

SPAN = 16  # tokens
WINNERS = 96
CLIPPED = 3.0  # standard deviations: a feature that a fault made huge says no more than one that is unusual
NEAREST = 8  # traces a span that may vote
WORLD, SESSION = "cache", "cache"


@dataclass(frozen=True, eq=False)
class CacheSpan:
    """What is kept of a span: its key, a code of one row, and its keys and values."""

    key: Code
    kv: HeldKV


@dataclass(frozen=True)
class SpanCodec:
    """Spans as safetensors."""

    precision: Precision

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"span": SPAN, "winners": WINNERS, "precision": self.precision}

    def check(self, payload: Any) -> None:
        if not isinstance(payload, CacheSpan):
            raise LabError(f"expected a span of a cache, got {type(payload).__name__}")

    def encode(self, payload: CacheSpan) -> bytes:
        kv = payload.kv.tensors if isinstance(payload.kv, Int8KV) else {"kv": payload.kv}
        return save(
            {"indices": payload.key.indices, "values": payload.key.values, **{name: part.contiguous() for name, part in kv.items()}}
        )

    def decode(self, data: bytes) -> CacheSpan:
        tensors = load(data)
        key = Code(tensors.pop("indices"), tensors.pop("values"))
        return CacheSpan(key, Int8KV.of_tensors(tensors) if self.precision == "int8" else tensors["kv"])

    def to_json(self, payload: CacheSpan, dense: bool = False) -> dict[str, Any]:
        return {"indices": payload.key.indices[0].tolist(), "values": payload.key.values[0].tolist(), "tokens": payload.kv.shape[3]}

    def from_json(self, values: Mapping[str, Any]) -> CacheSpan:
        raise LabError("keys and values of a span are not written as JSON; write the cache again")


class SpanStore:
    """The traces of caches, in a store of the lab's in `folder`."""

    def __init__(self, lm: LanguageModel, clean: CleanStatistics, folder: Path, precision: Precision = "bfloat16") -> None:
        self.lm, self.clean = lm, clean
        self.precision: Precision = precision
        identity = Identity(
            lm.spec.name, checksums.weights(lm.spec.name), "hippo_core.protocols.cache.spans:SpanStore", SpanCodec(precision)
        )
        self.store = TraceStore.create(folder, SESSION, identity)
        self._index: tuple[list[Trace], Code] | None = None
        self._places: dict[str, dict[int, Trace]] = {}

    def write(self, kv: KV, address: str, tokens: Sequence[int]) -> int:
        """Keep a cache span by span; the bytes of their payloads."""
        codec, traces = SpanCodec(self.precision), []
        codes = self.keys(kv)
        for number, first in enumerate(range(0, kv.shape[3], SPAN)):
            part = rounded(kv[:, :, :, first : first + SPAN].float().cpu(), self.precision)
            span = CacheSpan(Code(codes.indices[number : number + 1], codes.values[number : number + 1]), part)
            text = self.lm.tokenizer.decode(list(tokens[first : first + SPAN])).strip() or "(blank)"
            traces.append(Trace(WORLD, f"{address}#{number}", text, time=number, payload=span))
        self.store.append(traces)
        self._index = None
        return sum(len(codec.encode(trace.payload)) for trace in traces)

    def keys(self, kv: KV) -> Code:
        """The key of each span of a cache, damaged or not."""
        means = torch.stack([part.mean(3).flatten() for part in self.standardised(kv).split(SPAN, dim=3)])
        return kwta(means, WINNERS)

    def recall(self, kv: KV) -> str:
        """The address of the cache that a damaged one is likest to; empty where no trace shares anything with it."""
        traces, codes = self._read()
        cues = self.keys(kv)
        found = sparse_recall(codes, cues, NEAREST)
        votes: dict[str, int] = defaultdict(int)
        for number, (ids, scores) in enumerate(zip(found.ids.tolist(), found.scores.tolist(), strict=True)):
            for row, score in zip(ids, scores, strict=True):
                if row >= 0 and traces[row].time == number:
                    votes[traces[row].source.rpartition("#")[0]] += score
        return max(votes, key=lambda address: (votes[address], address)) if votes else ""

    def stored(self, address: str, tokens: int) -> KV | None:
        """The cache of an address as it is kept, [L, 2, H, T, D]; None where it has not as many tokens."""
        self._read()
        places = self._places.get(address, {})
        spans = [places[number].payload.kv for number in sorted(places)]
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
            self._places = {}
            for trace in traces:
                self._places.setdefault(trace.source.rpartition("#")[0], {})[trace.time] = trace
            self._index = traces, codes
        return self._index

    def standardised(self, kv: KV) -> Tensor:
        """Features as they lie among those of clean text, in standard deviations, at most CLIPPED; what is no number is the mean."""
        return ((kv.float().cpu() - self.clean.mean) / self.clean.spread).nan_to_num(0.0, 0.0, 0.0).clamp(-CLIPPED, CLIPPED)

    def likeness(self, kv: KV, other: KV) -> float:
        """The cosine of two caches' standardised features, from -1 to 1."""
        return cosine(self.standardised(kv), self.standardised(other))


def cosine(one: Tensor, two: Tensor) -> float:
    """The cosine of two tensors of one shape; 0 where one is all zeros."""
    one, two = one.flatten(), two.flatten()
    return float(torch.dot(one, two) / (one.norm() * two.norm()).clamp(min=1e-9))


def differs(kv: KV, other: KV, precision: Precision) -> Tensor:
    """Which vectors of a cache are not those of another but for the other's rounding: bool [L, 2, H, T, 1]."""
    tolerance = {"int8": 0.1, "bfloat16": 0.01, "model": 1e-4}[precision]
    away = (kv.float() - other.float()).norm(dim=-1, keepdim=True) / other.float().norm(dim=-1, keepdim=True).clamp(min=1e-9)
    return ~(away <= tolerance)

"""An index of the traces of one world. Each channel has its own index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hippo_core.errors import unknown
from hippo_core.retrieval.channels import Rows, Scores, SparseChannel, VectorChannel, codes_of, rows_of
from hippo_core.retrieval.fusion import CHANNELS, Channel
from hippo_core.retrieval.lexicon import Lexicon, grams, sentences, words
from hippo_core.retrieval.pieces import PieceChannel, PieceIndex
from hippo_core.retrieval.sparse_key import SparseMatrix
from hippo_core.retrieval.text_encoder import Codes, TextEncoder
from hippo_core.store.trace import Trace

ENCODED = frozenset({"key", "minilm", "pieces"})  # channels whose codes come from an encoder
SIMILARITY_POWER = 4  # a power: of 1, 2, 4 and 12 the best on validation worlds; only what is nearly the same takes a trace's place
TERMS = {"words": words, "grams": grams}


@dataclass(frozen=True)
class Cue:
    """A cue as it is compared with traces: its sparse code in each channel that has one, its encoder's vector int8 [D], its pieces."""

    codes: Mapping[str, SparseMatrix]
    vector: NDArray[np.int8] | None = None
    pieces: PieceIndex | None = None


class TraceIndex:
    """Traces in order of their ids, with what each channel compares of them; `encoder` codes cues as the traces' payloads were coded."""

    def __init__(self, traces: Sequence[Trace], channels: Sequence[Channel], encoder: TextEncoder | None = None) -> None:
        if wrong := sorted(set(channels) - set(CHANNELS)):
            raise unknown("channel", wrong[0], CHANNELS)
        self.traces, self.encoder = tuple(sorted(traces, key=lambda trace: trace.id)), encoder
        self.channels = tuple(channel for channel in CHANNELS if channel in channels)
        texts = [trace.text for trace in self.traces]
        self._lexicons = {name: Lexicon.of(texts, TERMS[name]) for name in self.channels if name in TERMS}
        self.sparse = {name: SparseChannel(lexicon.rows(texts), np.arange(len(texts))) for name, lexicon in self._lexicons.items()}
        if "key" in self.channels:
            self.sparse["key"] = SparseChannel(rows_of([key for trace in self.traces for key in trace.payload.keys]), self._starts)

    @cached_property
    def _starts(self) -> Rows:
        """Where each trace's sentences begin among all."""
        counts = np.array([max(len(trace.payload.keys), len(trace.payload.table)) for trace in self.traces], dtype=np.int64)
        return np.cumsum(counts) - counts

    @cached_property
    def _vectors(self) -> NDArray[np.int8]:
        return np.concatenate([trace.payload.table for trace in self.traces])

    @cached_property
    def vectors(self) -> VectorChannel:
        """The channel `minilm` as vectors."""
        return VectorChannel(self._vectors, self._starts)

    @cached_property
    def pieces(self) -> PieceChannel:
        """The channel `pieces`."""
        tables = [table for trace in self.traces for table in trace.payload.pieces]
        return PieceChannel(tables, [part for trace in self.traces for part in sentences(trace.text)], self._vectors, self._starts)

    @cached_property
    def expanded(self) -> SparseChannel:
        """The channel `minilm` as the sparse codes that fitted weights were fitted on."""
        return SparseChannel(codes_of(self._vectors), self._starts)

    def cue(self, text: str, codes: Codes | None = None) -> Cue:
        """A cue as this index compares it; `codes`: its encoder's, where they are known."""
        sparse = {name: lexicon.rows([text]) for name, lexicon in self._lexicons.items()}
        if not self.encoder or not ENCODED & set(self.channels):
            return Cue(sparse)
        codes = codes or self.encoder.codes([text])
        if "key" in self.channels and codes.keys is not None:
            sparse["key"] = codes.keys
        vector, pieces = codes.vectors[0] if "minilm" in self.channels else None, codes.pieces[0] if "pieces" in self.channels else None
        return Cue(sparse, vector, pieces)

    def cue_tokens(self, text: str) -> float:
        """Tokens that are run for a cue's codes."""
        return self.encoder.cost(text) if self.encoder and ENCODED & set(self.channels) else 0.0

    def likeness(self, cue: Cue) -> dict[str, Scores]:
        """How like the cue each trace is, by channel, float64 [N]. Of words and n-grams it is the share of the cue that the trace holds, of
        keys and vectors the cosine, of pieces `PieceChannel.scores`."""
        scores = {
            name: self.sparse[name].covered(code) if name in TERMS else self.sparse[name].cosines(code) for name, code in cue.codes.items()
        }
        scores |= {} if cue.vector is None else {"minilm": self.vectors.cosines(cue.vector)}
        return scores if cue.pieces is None else {**scores, "pieces": self.pieces.scores(cue.pieces)}

    def features(self, cue: Cue, rows: Rows) -> dict[str, Scores]:
        """The features that weights are fitted for: in each channel cosine and covered share of the cue, and `superseded`."""
        scores: dict[str, Scores] = {}
        for name, (channel, code) in self._coded(cue).items():
            scores |= channel.features(name, code, rows)
        return scores | ({"superseded": self.superseded(rows)} if "key" in cue.codes else {})

    def candidates(self, cue: Cue, count: int, mask: Tensor | None = None) -> Rows:
        """Rows of the `count` best of each channel together, ascending; of those that `mask` bool [N] allows."""
        rows = [channel.candidates(code, count, mask) for channel, code in self._coded(cue).values()]
        return np.unique(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)

    def _coded(self, cue: Cue) -> dict[str, tuple[SparseChannel, SparseMatrix]]:
        """The channels as sparse codes, each with the cue's code."""
        coded = {name: (self.sparse[name], code) for name, code in cue.codes.items()}
        return coded if cue.vector is None else {**coded, "minilm": (self.expanded, codes_of(cue.vector[None]))}

    def superseded(self, rows: Rows) -> Scores:
        """For each row the highest cosine, to the fourth, of its key with one of these rows that was told later; 0 where none was."""
        if "key" not in self.sparse:
            return np.zeros(len(rows))
        patterns = self.sparse["key"].dense(rows)
        times = np.array([self.traces[row].time for row in rows])
        later = times[None] > times[:, None]
        return np.where(later, (patterns @ patterns.T).numpy().astype(np.float64), 0.0).max(1, initial=0.0) ** SIMILARITY_POWER

    @cached_property
    def patterns(self) -> Tensor:
        """The keys as dense rows of length 1 [N, dims], fp32."""
        return self.sparse["key"].dense(np.arange(len(self.traces)))

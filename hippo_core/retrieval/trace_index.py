"""The traces of one world made ready for cues, each channel with an index of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from hippo_core.files import unknown
from hippo_core.kernels.code import Code
from hippo_core.kernels.kwta import kwta
from hippo_core.kernels.sparse_recall.index import SparseIndex
from hippo_core.models.minilm import pieces
from hippo_core.retrieval.key_encoder import KeyModel
from hippo_core.retrieval.lexicon import Lexicon, grams, words
from hippo_core.retrieval.minilm_codes import codes as minilm_codes
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.retrieval.sparse_matrix import SparseMatrix
from hippo_core.store.trace import Trace

Channel = Literal["words", "grams", "key", "minilm"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
ALIKE = 4  # a power: of 1, 2, 4 and 12 the best on validation worlds; only what is nearly the same takes a trace's place
TERMS = {"words": words, "grams": grams}


@dataclass(frozen=True)
class KeyEncoder:
    """How texts become keys: the fitted encoder, its first `expansion` units, and how many of them win (None: all that are active)."""

    model: KeyModel
    expansion: int
    winners: int | None

    def keys(self, texts: Sequence[str]) -> list[SparseKey]:
        """The key of each text."""
        return self.keys_of(self.model.activations(texts, self.expansion))

    def keys_of(self, activations: Tensor) -> list[SparseKey]:
        """The keys of activations [N, expansion]."""
        code = self.code(activations)
        return [SparseKey.unpadded(*row, self.expansion) for row in zip(code.indices, code.values, strict=True)]

    def matrix(self, texts: Sequence[str]) -> SparseMatrix:
        """The keys of several texts, run together."""
        return self.code(self.model.activations(texts, self.expansion))

    def code(self, activations: Tensor) -> SparseMatrix:
        """Activations [N, expansion] as rows of a code."""
        code = kwta(activations, self.winners or self.expansion)
        return SparseMatrix(code.indices.numpy(), code.values.numpy().astype(np.int16), self.expansion)


class TraceIndex:
    """Traces in order of their ids, and for each channel their rows and the index that finds the nearest of them."""

    def __init__(self, traces: Sequence[Trace], channels: Sequence[Channel], encoder: KeyEncoder | None, device: str = "cpu") -> None:
        if wrong := sorted(set(channels) - set(CHANNELS)):
            raise unknown("channel", wrong[0], CHANNELS)
        self.traces, self.encoder = tuple(sorted(traces, key=lambda trace: trace.id)), encoder
        texts = [trace.text for trace in self.traces]
        self._lexicons = {name: Lexicon.of(texts, TERMS[name]) for name in channels if name in TERMS}
        self.rows: dict[str, SparseMatrix] = {name: lexicon.rows(texts) for name, lexicon in self._lexicons.items()}
        if "key" in channels:
            self.rows["key"] = rows_of([trace.payload.key for trace in self.traces])
        self._device = device
        if "minilm" in channels:
            self.rows["minilm"] = minilm_codes(texts, device)
        self._indexes = {name: index_of(rows) for name, rows in self.rows.items()}

    def cue(self, text: str, key: SparseMatrix | None = None) -> dict[str, SparseMatrix]:
        """The cue's code in each channel; `key`: that of the key, where it is known."""
        codes = {name: lexicon.rows([text]) for name, lexicon in self._lexicons.items()}
        if "key" in self.rows and self.encoder:
            codes["key"] = key or self.encoder.matrix([text])
        if "minilm" in self.rows:
            codes["minilm"] = minilm_codes([text], self._device)
        return codes

    def cue_tokens(self, text: str) -> float:
        """Tokens that are run for a cue's codes, those of the key each counting the share of the model's blocks that they go through."""
        tokens = float(pieces(text, self._device)) if "minilm" in self.rows else 0.0
        if "key" in self.rows and self.encoder:
            tokens += self.encoder.model.source.cost(text)
        return tokens

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """When each trace was told."""
        return np.array([trace.time for trace in self.traces], dtype=np.float64)

    def superseded(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """For each row the highest cosine, to the fourth, of its key with one of these rows that was told later; 0 where none was."""
        if "key" not in self.rows:
            return np.zeros(len(rows))
        patterns = self.patterns[torch.from_numpy(rows)]
        later = self.times[rows][None] > self.times[rows][:, None]
        return np.where(later, (patterns @ patterns.T).numpy().astype(np.float64), 0.0).max(1, initial=0.0) ** ALIKE

    @cached_property
    def patterns(self) -> Tensor:
        """The keys as dense rows of length 1 [N, dims], fp32."""
        return dense(self.rows["key"])

    def candidates(self, cue: Mapping[str, SparseMatrix], count: int, mask: Tensor | None = None) -> NDArray[np.int64]:
        """Rows of the `count` best of each channel together, ascending; of those that `mask` bool [N] allows."""
        rows = [self._indexes[name].recall(code_of(code), count, mask).ids[0].numpy() for name, code in cue.items()]
        together = np.unique(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
        return together[together >= 0]


def name_of(channels: Iterable[str]) -> str:
    """What a choice of channels is called: "words+grams+key"."""
    chosen = set(channels)
    return "+".join(channel for channel in CHANNELS if channel in chosen)


def dense(rows: SparseMatrix) -> Tensor:
    """Rows with all their dimensions, each of length 1: [N, dims], fp32."""
    laid = torch.zeros(len(rows.indices), rows.dims + 1)
    columns = torch.from_numpy(rows.indices.astype(np.int64))
    laid.scatter_(1, torch.where(columns < 0, rows.dims, columns), torch.from_numpy(rows.values.astype(np.float32)))
    return normalize(laid[:, : rows.dims], dim=-1)


def code_of(rows: SparseMatrix) -> Code:
    """Rows as a kernel takes them."""
    return Code(torch.from_numpy(rows.indices), torch.from_numpy(rows.values))


def index_of(rows: SparseMatrix) -> SparseIndex:
    """An index that holds these rows."""
    index = SparseIndex(max(1, rows.dims), torch.int16)
    index.add(code_of(rows))
    return index


def rows_of(keys: Sequence[SparseKey]) -> SparseMatrix:
    """Keys of one space as rows."""
    width = max((len(key.indices) for key in keys), default=1)
    indices = np.full((len(keys), width), -1, dtype=np.int32)
    values = np.zeros((len(keys), width), dtype=np.int16)
    for row, key in enumerate(keys):
        indices[row, : len(key.indices)], values[row, : len(key.values)] = key.indices, key.values
    return SparseMatrix(indices, values, keys[0].dims if keys else 1)

"""An index of the traces of one world. Each channel has its own index."""

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
ALIKE = 4  # a power, the best of 1, 2, 4 and 12 on validation worlds; only a nearly identical trace replaces another
TERMS = {"words": words, "grams": grams}


@dataclass(frozen=True)
class KeyEncoder:
    """Encode texts as keys.

    Args:
        model: the fitted encoder.
        expansion: how many of its first units are used.
        winners: how many of these win; None for all active units.
    """

    model: KeyModel
    expansion: int
    winners: int | None

    def keys(self, texts: Sequence[str]) -> list[SparseKey]:
        """The key of each text."""
        return self.keys_of(self.model.activations(texts, self.expansion))

    def keys_of(self, activations: Tensor) -> list[SparseKey]:
        """The key of each row of activations, `(texts, expansion)`."""
        code = self.code(activations)
        return [SparseKey.unpadded(*row, self.expansion) for row in zip(code.indices, code.values, strict=True)]

    def matrix(self, texts: Sequence[str]) -> SparseMatrix:
        """The keys of several texts as one matrix; the texts are run in one batch."""
        return self.code(self.model.activations(texts, self.expansion))

    def code(self, activations: Tensor) -> SparseMatrix:
        """The k-WTA code of activations, `(texts, expansion)`."""
        code = kwta(activations, self.winners or self.expansion)
        return SparseMatrix(code.indices.numpy(), code.values.numpy().astype(np.int16), self.expansion)


class TraceIndex:
    """Traces in order of their ids. Each channel has the code rows of all traces, and an index that finds the nearest of them.

    Raises:
        LabError: a channel is unknown.
    """

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
        """The cue's code in each channel. `key`: its code in the key channel, if it is already known."""
        codes = {name: lexicon.rows([text]) for name, lexicon in self._lexicons.items()}
        if "key" in self.rows and self.encoder:
            codes["key"] = key or self.encoder.matrix([text])
        if "minilm" in self.rows:
            codes["minilm"] = minilm_codes([text], self._device)
        return codes

    def cue_tokens(self, text: str) -> float:
        """The tokens that are run for a cue's codes. A token of the key counts as the share of the model's blocks that it passes."""
        tokens = float(pieces(text, self._device)) if "minilm" in self.rows else 0.0
        if "key" in self.rows and self.encoder:
            tokens += self.encoder.model.source.cost(text)
        return tokens

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The time at which each trace was told, `(traces,)`, float64."""
        return np.array([trace.time for trace in self.traces], dtype=np.float64)

    def superseded(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """How much each row looks as if a later one of these rows replaced it.

        Returns:
            The highest cosine of its key with the key of a later row, to the fourth power, `(len(rows),)`, float64. It is 0 if no row is
            later or there is no key channel.
        """
        if "key" not in self.rows:
            return np.zeros(len(rows))
        patterns = self.patterns[torch.from_numpy(rows)]
        later = self.times[rows][None] > self.times[rows][:, None]
        return np.where(later, (patterns @ patterns.T).numpy().astype(np.float64), 0.0).max(1, initial=0.0) ** ALIKE

    @cached_property
    def patterns(self) -> Tensor:
        """The keys as dense rows of length 1, `(traces, dims)`, fp32."""
        return dense(self.rows["key"])

    def candidates(self, cue: Mapping[str, SparseMatrix], count: int, mask: Tensor | None = None) -> NDArray[np.int64]:
        """The union of the `count` best rows of each channel.

        Args:
            mask: the rows that are allowed, `(traces,)`, bool; None allows all.

        Returns:
            Row numbers, ascending, `(candidates,)`, int64.
        """
        rows = [self._indexes[name].recall(code_of(code), count, mask).ids[0].numpy() for name, code in cue.items()]
        together = np.unique(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
        return together[together >= 0]


def name_of(channels: Iterable[str]) -> str:
    """The name of a set of channels, such as "words+grams+key"."""
    chosen = set(channels)
    return "+".join(channel for channel in CHANNELS if channel in chosen)


def dense(rows: SparseMatrix) -> Tensor:
    """The rows in dense form, each scaled to length 1, `(rows, dims)`, fp32."""
    laid = torch.zeros(len(rows.indices), rows.dims + 1)
    columns = torch.from_numpy(rows.indices.astype(np.int64))
    laid.scatter_(1, torch.where(columns < 0, rows.dims, columns), torch.from_numpy(rows.values.astype(np.float32)))
    return normalize(laid[:, : rows.dims], dim=-1)


def code_of(rows: SparseMatrix) -> Code:
    """The rows in the form that the kernels take."""
    return Code(torch.from_numpy(rows.indices), torch.from_numpy(rows.values))


def index_of(rows: SparseMatrix) -> SparseIndex:
    """An index that holds these rows."""
    index = SparseIndex(max(1, rows.dims), torch.int16)
    index.add(code_of(rows))
    return index


def rows_of(keys: Sequence[SparseKey]) -> SparseMatrix:
    """Keys of one space as rows of a matrix."""
    width = max((len(key.indices) for key in keys), default=1)
    indices = np.full((len(keys), width), -1, dtype=np.int32)
    values = np.zeros((len(keys), width), dtype=np.int16)
    for row, key in enumerate(keys):
        indices[row, : len(key.indices)], values[row, : len(key.values)] = key.indices, key.values
    return SparseMatrix(indices, values, keys[0].dims if keys else 1)

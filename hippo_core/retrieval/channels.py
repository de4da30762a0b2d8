"""Channels: each compares a cue with all traces by a measure of its own. A trace counts as its best sentence does."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from hippo_core.kernels.code import Code
from hippo_core.kernels.kwta import kwta
from hippo_core.kernels.sparse_recall.index import SparseIndex
from hippo_core.retrieval.sparse_key import SparseKey, SparseMatrix
from hippo_core.retrieval.vectors import cosines, lengths_of

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
UNITS, WINNERS, SEED = 4096, 256, 1337  # of the codes of vectors


class SparseChannel:
    """Sparse codes: `rows` [S], of which trace n has those from starts[n] on, up to those of the next."""

    def __init__(self, rows: SparseMatrix, starts: Rows) -> None:
        self.rows, self.starts, self._index = rows, starts, index_of(rows)

    def __len__(self) -> int:
        return len(self.starts)

    def cosines(self, cue: SparseMatrix) -> Scores:
        """The cosine of each trace with the cue, float64 [N]."""
        return best(self._index.scores(code_of(cue))[0] / (self.rows.norms * cue.norms[0]), self.starts)

    def covered(self, cue: SparseMatrix) -> Scores:
        """How much of the cue, a share of its squared length, each trace has, float64 [N]: what else a trace says does not make it less."""
        return best(self._index.scores(code_of(cue), covered=True)[0] / cue.norms[0] ** 2, self.starts)

    def features(self, name: str, cue: SparseMatrix, traces: Rows) -> dict[str, Scores]:
        """Both of these traces alone, as fitted weights know them."""
        sentences, starts = self._sentences(traces)
        scores = {name: self.rows.cosines(sentences, cue), f"{name}_covered": self.rows.covered(sentences, cue)}
        return {feature: best(values, starts) for feature, values in scores.items()}

    def candidates(self, cue: SparseMatrix, count: int, mask: Tensor | None) -> Rows:
        """The traces of the `count` best sentences of those that `mask` bool [N] allows."""
        ends = np.append(self.starts[1:], len(self.rows.indices))
        allowed = None if mask is None else torch.from_numpy(np.repeat(mask.numpy(), ends - self.starts))
        sentences = self._index.recall(code_of(cue), count, allowed).ids[0].numpy()
        return np.searchsorted(self.starts, sentences[sentences >= 0], side="right") - 1

    def dense(self, traces: Rows) -> Tensor:
        """These traces with all dimensions, each the union of its sentences and of length 1: [len(traces), dims], fp32."""
        sentences, starts = self._sentences(traces)
        laid = dense(self.rows.some(sentences))
        patterns = torch.stack([part.amax(0) for part in laid.tensor_split(starts[1:].tolist())]) if len(traces) else laid
        return normalize(patterns, dim=-1)

    def _sentences(self, traces: Rows) -> tuple[Rows, Rows]:
        """The rows of these traces, one after another, and where each trace's begin."""
        ends = np.append(self.starts[1:], len(self.rows.indices))[traces]
        counts = ends - self.starts[traces]
        starts = np.cumsum(counts) - counts
        return np.repeat(self.starts[traces] - starts, counts) + np.arange(counts.sum()), starts


class VectorChannel:
    """Vectors int8 [S, D], of which trace n has those from starts[n] on, up to those of the next."""

    def __init__(self, vectors: NDArray[np.int8], starts: Rows) -> None:
        self.vectors, self.starts, self._lengths = vectors, starts, lengths_of(vectors)

    def cosines(self, cue: NDArray[np.int8]) -> Scores:
        """The cosine of each trace with the cue's vector [D], float64 [N]."""
        return best(cosines(self.vectors, self._lengths, cue), self.starts)


def best(scores: Scores, starts: Rows) -> Scores:
    """The best of each trace's sentences, float64 [N], of the scores of all [S]."""
    return scores if len(scores) == len(starts) else np.maximum.reduceat(scores, starts) if len(starts) else np.zeros(0)


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
    return SparseMatrix.of([(key.indices, key.values) for key in keys], keys[0].dims if keys else 1)


def codes_of(vectors: NDArray[np.int8]) -> SparseMatrix:
    """The sparse codes of vectors [N, D], expanded at random, the strongest units winning, by which fitted weights know them. The product
    of two codes follows the cosine of the vectors (Charikar 2002, section 3; Dasgupta, Stevens and Navlakha 2017)."""
    unit = normalize(torch.from_numpy(vectors).float(), dim=-1)
    code = kwta(unit @ _expansion(vectors.shape[1]), WINNERS)
    return SparseMatrix(code.indices.numpy(), code.values.numpy().astype(np.int16), UNITS)


@cache
def _expansion(width: int) -> Tensor:
    return torch.randn(width, UNITS, generator=torch.Generator().manual_seed(SEED))

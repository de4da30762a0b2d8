"""Sparse recall on a CPU: an inverted index of the store, asked once."""

from torch import Tensor

from hippo_core.kernels.code import Code
from hippo_core.kernels.sparse_recall.index import SparseIndex


def recall(store: Code, cue: Code, top: int, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and scores int64 [B, top] of the best rows that the mask bool [N] allows."""
    dims = int(store.indices.max()) + 1 if store.indices.numel() else 1
    index = SparseIndex(max(dims, 1), store.values.dtype)
    index.add(store)
    return index.recall(cue, top, mask)

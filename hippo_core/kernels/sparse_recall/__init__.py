"""Sparse recall: of all stored codes those that share most with a cue, best first.

    score(n) = sum over indices i that both have of store[n, i] * cue[i]        integers, exact
    recalled = the `top` rows of score > 0, by score descending, then row ascending

Store and cues are sparse codes (kernels/code.py): int32 indices [N, K] and [B, K'], int8 or int16 values. A mask bool [N] says which rows
may be recalled: deleted rows and those of a foreign context may not. Scores are int64 [B, top], ids are rows of the store, int64 [B, top];
where fewer rows are recalled, -1 and score 0 stand behind them. All is integer arithmetic, so every version gives the same ids.

A store that is asked more than once is kept as a `SparseIndex` (index.py): the version for a CPU builds one anew at each call.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.kernels.code import Code, check_code, version


class Recalled(NamedTuple):
    """For each cue the rows found, int64 [B, top], -1 where there are fewer, and their scores int64 [B, top], 0 there."""

    ids: Tensor
    scores: Tensor


def sparse_recall(store: Code, cue: Code, top: int, mask: Tensor | None = None, impl: str = "cpu") -> Recalled:
    """The `top` best rows of the store for each cue; `mask` bool [N] is True where a row may be recalled (None: everywhere).

    An empty store, an empty cue, a `top` larger than the store recall what there is: nothing, nothing, all rows that share something.
    LabError for codes that are none, a mask of another length, `top` below 1, and as `code.version` raises.
    """
    check_code(store, "store")
    check_recall(cue, top, mask, len(store.indices))
    if {part.device for part in (cue.indices, *([] if mask is None else [mask]))} != {store.indices.device}:
        raise LabError(f"cue and mask must be on {store.indices.device}, as the store is; move them")
    kernel = version("sparse_recall", impl, store.indices.device)
    if mask is None:
        mask = torch.ones(len(store.indices), dtype=torch.bool, device=store.indices.device)
    return Recalled(*kernel.recall(store, cue, top, mask))


def check_recall(cue: Code, top: int, mask: Tensor | None, rows: int) -> None:
    """LabError where a store of so many rows cannot be asked like this."""
    check_code(cue, "cue")
    if top < 1:
        raise LabError(f"recall expects top of at least 1, got {top}")
    if mask is not None and (mask.dtype != torch.bool or mask.shape != (rows,)):
        raise LabError(f"the mask must be bool [{rows}], one entry a stored row, got {mask.dtype} {[*mask.shape]}")

"""A sparse code: of each row the dimensions that won, and their integer weights."""

from typing import NamedTuple

import torch
from torch import Tensor

from hippo_core.errors import LabError

WEIGHTS = (torch.int8, torch.int16)


class Code(NamedTuple):
    """N rows of at most K winners.

    `indices` int32 [N, K] are dimensions, ascending, -1 behind a row's last; `values` int8 or int16 [N, K] are weights, 0 there. Kernels
    that read a code do not rest on the order: a negative index counts for nothing, and weights of an index that stands twice add up.
    """

    indices: Tensor
    values: Tensor


def check_code(code: Code, what: str) -> None:
    """LabError where the tensors are not a code's: their shapes, dtypes, or devices."""
    indices, values = code
    if indices.ndim != 2 or indices.shape != values.shape:
        raise LabError(f"{what}: indices and values must have one shape [N, K], got {[*indices.shape]} and {[*values.shape]}")
    if indices.dtype != torch.int32 or values.dtype not in WEIGHTS:
        raise LabError(f"{what}: expected int32 indices and int8 or int16 values, got {indices.dtype} and {values.dtype}")
    if indices.device != values.device:
        raise LabError(f"{what}: indices are on {indices.device}, values on {values.device}; move one of them")

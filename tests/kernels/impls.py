"""The versions that a test runs, and codes drawn for it."""

from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from hippo_core.kernels.code import Code

NO_TRITON = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
IMPLS = ["reference", "cpu", pytest.param("triton", marks=NO_TRITON)]


def device(impl: str) -> str:
    """Where a version's tensors belong: Triton's on a GPU where there is one."""
    return "cuda" if impl == "triton" and torch.cuda.is_available() else "cpu"


def draw_code(seed: int, rows: int, width: int, dims: int, dtype: torch.dtype = torch.int8) -> Code:
    """A random code of `rows` rows of up to `width` entries: some rows empty, few values, so that scores tie."""
    random = torch.Generator().manual_seed(seed)
    indices = torch.full((rows, width), -1, dtype=torch.int32)
    values = torch.zeros(rows, width, dtype=dtype)
    for row in range(rows):
        count = int(torch.randint(0, min(width, dims) + 1, (), generator=random))
        indices[row, :count] = torch.randperm(dims, generator=random)[:count].sort().values.int()
        values[row, :count] = torch.randint(-3, 4, (count,), generator=random, dtype=dtype)
    return Code(indices, values)


def to(where: str, *tensors: Tensor | None) -> list[Tensor | None]:
    return [None if tensor is None else tensor.to(where) for tensor in tensors]

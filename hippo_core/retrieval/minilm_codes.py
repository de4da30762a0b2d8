"""Sparse codes of texts from all-MiniLM-L6-v2 vectors.

A random matrix expands a text's vector into a large space, and the strongest units win. The matrix is fixed and Gaussian, so the product of
two codes follows the cosine of the vectors (Charikar 2002, section 3, for signs; Dasgupta, Stevens and Navlakha 2017 for winners, after the
fly's olfactory circuit). A memory has this channel only if its preset asks for it. It then uses the same encoder as the retrieval that it
is compared with.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

from hippo_core.kernels.kwta import kwta
from hippo_core.retrieval.minilm import vectors_of
from hippo_core.retrieval.sparse_matrix import SparseMatrix

UNITS, WINNERS, SEED = 4096, 256, 1337


def codes(texts: Sequence[str], device: str = "cpu") -> SparseMatrix:
    """The texts' codes."""
    vectors = vectors_of(texts, device)
    code = kwta(vectors @ _expansion(vectors.shape[1]), WINNERS)
    return SparseMatrix(code.indices.numpy(), code.values.numpy().astype(np.int16), UNITS)


@cache
def _expansion(width: int) -> Tensor:
    return torch.randn(width, UNITS, generator=torch.Generator().manual_seed(SEED))

"""Sparse codes of the vectors of all-MiniLM-L6-v2, by which fitted weights know them; where nothing is fitted, vectors are compared.

A code is the vector, expanded at random into a large space, the strongest units winning. The expansion is a fixed matrix of Gaussian
draws, so that the product of two codes follows the cosine of the vectors (Charikar 2002, section 3, for signs; Dasgupta, Stevens and
Navlakha 2017 for winners, after the fly's olfactory circuit).
"""

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from hippo_core.kernels.kwta import kwta
from hippo_core.retrieval.sparse_matrix import SparseMatrix

UNITS, WINNERS, SEED = 4096, 256, 1337


def codes_of(vectors: NDArray[np.int8]) -> SparseMatrix:
    """The codes of vectors [N, D], of which the direction alone counts."""
    unit = normalize(torch.from_numpy(vectors).float(), dim=-1)
    code = kwta(unit @ _expansion(vectors.shape[1]), WINNERS)
    return SparseMatrix(code.indices.numpy(), code.values.numpy().astype(np.int16), UNITS)


@cache
def _expansion(width: int) -> Tensor:
    return torch.randn(width, UNITS, generator=torch.Generator().manual_seed(SEED))

"""The smallest call of each kernel, by the name of a version; imports nothing but the kernels."""

import torch

from hippo_core.kernels.code import Code
from hippo_core.kernels.hopfield import hopfield
from hippo_core.kernels.kwta import kwta
from hippo_core.kernels.sparse_recall import sparse_recall
from hippo_core.kernels.trace_attention import trace_attention

X = torch.tensor([[1.0, 0.5, -2.0], [0.0, 3.0, 1.0]])
CODE = Code(torch.tensor([[0, 2], [1, -1]], dtype=torch.int32), torch.tensor([[3, -4], [5, 0]], dtype=torch.int8))
HEADS, SEEN = torch.ones(1, 2, 3, 4), torch.ones(1, 3, dtype=torch.bool)
CALLS = {
    "kwta": lambda impl: kwta(X, 1, impl),
    "sparse_recall": lambda impl: sparse_recall(CODE, CODE, 1, impl=impl),
    "hopfield": lambda impl: hopfield(X, X[:1], 1.0, impl=impl),
    "trace_attention": lambda impl: trace_attention(HEADS, HEADS, HEADS, SEEN, impl=impl),
}

"""Tensor operations of the memory. Each folder is one kernel: its contract, a reference in plain torch, versions for a CPU and a GPU."""

from hippo_core.kernels.code import Code
from hippo_core.kernels.hopfield import hopfield
from hippo_core.kernels.kwta import kwta
from hippo_core.kernels.sparse_recall import sparse_recall
from hippo_core.kernels.trace_attention import merge, trace_attention

__all__ = ["Code", "hopfield", "kwta", "merge", "sparse_recall", "trace_attention"]

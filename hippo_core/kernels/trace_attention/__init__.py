"""Trace attention: the queries of a question attend to the keys and values of recalled traces.

    s[t, j] = scale * q[t] . k[j],   lse[t] = log sum_j exp s[t, j],   out[t] = sum_j exp(s[t, j] - lse[t]) v[j]

q is [B, H, T, d], k and v are [B, G, S, d]: query heads come in G groups of H / G neighbours, each group with keys of its own (grouped
queries, Ainslie et al. 2023, arXiv 2305.13245). mask bool [B, S] is True where a trace token may be seen. out is [B, H, T, d], lse
[B, H, T] in nats, float32 or wider: with it the caller merges this attention with the question's own as if it were one softmax (`merge`;
Dao et al. 2022, arXiv 2205.14135, section 3.1). Where nothing may be seen, out is 0 and lse is -inf, so that a merge leaves the other
side as it is. The reference and the version for a CPU have gradients, through out and lse.
"""

import torch
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.kernels.code import version


def trace_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float | None = None, impl: str = "cpu") -> tuple[Tensor, Tensor]:
    """`out` [B, H, T, d] and `lse` [B, H, T]; `scale` is 1 / sqrt(d) where it is None.

    LabError for shapes or dtypes that do not fit, for gradients of a version that has none, and as `code.version` raises.
    """
    _check(q, k, v, mask)
    attend = version("trace_attention", impl, q.device).attend
    if not k.shape[2]:
        return torch.zeros_like(q), q.new_full(q.shape[:3], -torch.inf, dtype=torch.promote_types(q.dtype, torch.float32))
    return attend(q, k, v, mask, q.shape[3] ** -0.5 if scale is None else scale)


def merge(out: Tensor, lse: Tensor, other: Tensor, other_lse: Tensor) -> tuple[Tensor, Tensor]:
    """Two attentions of the same queries over different keys as one over all: [B, H, T, d] and [B, H, T]. Both may have seen nothing."""
    both = torch.logaddexp(lse, other_lse)
    seen = both > -torch.inf
    base = torch.where(seen, both, 0)
    share, rest = (lse - base).exp()[..., None], (other_lse - base).exp()[..., None]
    return share * out + rest * other, both


def _check(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> None:
    shapes = f"q {[*q.shape]}, k {[*k.shape]}, v {[*v.shape]}, mask {[*mask.shape]}"
    if q.ndim != 4 or k.ndim != 4 or k.shape != v.shape or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3]):
        raise LabError(f"trace_attention expects q [B, H, T, d], k and v [B, G, S, d], got {shapes}")
    if mask.dtype != torch.bool or mask.shape != (k.shape[0], k.shape[2]) or q.shape[1] % k.shape[1]:
        raise LabError(f"trace_attention expects mask bool [B, S] and heads H in G equal groups, got {mask.dtype} and {shapes}")
    if not q.dtype.is_floating_point or {k.dtype, v.dtype} != {q.dtype}:
        raise LabError(f"trace_attention expects q, k, v of one floating dtype, got {q.dtype}, {k.dtype}, {v.dtype}")

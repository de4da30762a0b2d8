"""Hopfield completion: a cue moves towards the stored keys that it resembles, as CA3 completes a pattern from a part of it.

    z <- softmax(beta * M z) M        `steps` times (Ramsauer et al. 2020, arXiv 2008.02217, eq. 3)

M is float32 [N, D], one stored key a row, z float32 [B, D], one cue a row; both are used as they come, so beta (1 / a unit of M z) means
what the caller's norms make of it. The softmax runs over the rows that the mask bool [N] allows. Every version streams over the rows with
a running maximum and sum: the N weights of a cue are never held together. Where no row is allowed, and for an empty store, the cue comes
back unchanged: there is nothing to complete it with (the paper assumes at least one pattern).
"""

import math

import torch
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.kernels.code import version


def hopfield(memory: Tensor, cue: Tensor, beta: float, steps: int = 1, mask: Tensor | None = None, impl: str = "cpu") -> Tensor:
    """The cues after so many steps, float32 [B, D]; `mask` bool [N] is True where a row of `memory` may be used (None: everywhere).

    LabError for shapes or dtypes that do not fit, a beta that is not finite, fewer than one step, and as `code.version` raises.
    """
    if memory.ndim != 2 or cue.ndim != 2 or memory.shape[1] != cue.shape[1] or {memory.dtype, cue.dtype} != {torch.float32}:
        shapes = f"{memory.dtype} {[*memory.shape]} and {cue.dtype} {[*cue.shape]}"
        raise LabError(f"hopfield expects memory [N, D] and cue [B, D] of float32 and one D, got {shapes}")
    if mask is not None and (mask.dtype != torch.bool or mask.shape != memory.shape[:1]):
        raise LabError(f"the mask must be bool [{len(memory)}], one entry a row of memory, got {mask.dtype} {[*mask.shape]}")
    if not math.isfinite(beta) or steps < 1:
        raise LabError(f"hopfield expects a finite beta and at least 1 step, got beta {beta} and {steps} steps")
    step = version("hopfield", impl, memory.device).step
    memory, cue = memory.detach().contiguous(), cue.detach().contiguous()
    if len(memory) == 0 or (mask is not None and not mask.any()):
        return cue.clone()
    for _ in range(steps):
        cue = step(memory, cue, beta, mask)
    return cue

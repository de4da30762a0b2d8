"""Float32 products on a CPU by the faster of PyTorch's two libraries, where they stay float32."""

from typing import Any

import torch

MKLDNN: Any = torch.backends.mkldnn

AS_EXACT = 16  # times the other library's error at most: both add in float32, in another order; rounding to bfloat16 is 1,000 times off


def quicken_products() -> bool:
    """Let oneDNN compute the float32 products of this process wherever it does so in float32; return whether it does.

    By itself PyTorch gives them to MKL, which on processors not made by Intel runs at half of what they can (112 against 243
    GFLOP/s a core). oneDNN gets them when it is allowed to round to bfloat16, and rounds where there are matrix units for that: so a
    product is tried beside the same in float64, and where rounding shows, all stays as it was.
    """
    if not MKLDNN.is_available():
        return False
    matmul = MKLDNN.matmul
    before, plain = matmul.fp32_precision, _error("ieee")
    exact = _error("bf16") <= AS_EXACT * plain
    matmul.fp32_precision = "bf16" if exact else before
    return exact


def _error(precision: str) -> float:
    """The largest error of a product of 256 x 256 numbers under this setting, which stays set."""
    MKLDNN.matmul.fp32_precision = precision
    a, b = torch.randn(2, 256, 256, generator=torch.Generator().manual_seed(0))
    return (a @ b - a.double() @ b.double()).abs().max().item()

"""Products at what the processor can: float32 by the faster of two libraries, bfloat16 only where it has instructions for that."""

from functools import cache
from typing import Any

import torch

MKLDNN: Any = torch.backends.mkldnn

AS_EXACT = 16  # times the other library's error at most: both add in float32, in another order; rounding to bfloat16 is 1,000 times off
SHAPES = ((1, 576, 1536), (8, 256, 384), (200, 1536, 576), (300, 576, 2048))  # rows, inner, columns: a token, a few, prompts, a vocabulary


def quicken_products() -> bool:
    """Let oneDNN compute the float32 products of this process wherever it does so in float32; return whether it does.

    PyTorch gives them to MKL, which runs at half speed on processors not made by Intel. oneDNN gets them when it may round to bfloat16, and
    rounds where there are matrix units for that: so products of several shapes are held against float64 first.
    """
    if not MKLDNN.is_available():
        return False
    exact = _is_exact()
    if exact:
        MKLDNN.matmul.fp32_precision = "bf16"
    return exact


@cache
def _is_exact() -> bool:
    """Whether oneDNN's products are float32's where it may round. Tried once a process, and not again in its forks."""
    before, plain = MKLDNN.matmul.fp32_precision, _errors("ieee")
    quick = _errors("bf16")
    MKLDNN.matmul.fp32_precision = before
    return all(fast_error <= AS_EXACT * plain_error for fast_error, plain_error in zip(quick, plain, strict=True))


def half_products(device: torch.device | str, wanted: bool = True) -> torch.autocast:
    """A context in which a model's products are of bfloat16, where that is wanted and the device has instructions for it. A processor
    without them takes fifteen times as long as for float32 (AVX2)."""
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=wanted and (kind != "cpu" or multiplies_bfloat16()))


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for products of bfloat16."""
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _errors(precision: str) -> list[float]:
    """The largest error of each product under this setting, which stays set."""
    MKLDNN.matmul.fp32_precision = precision
    errors, generator = [], torch.Generator().manual_seed(0)
    for rows, inner, columns in SHAPES:
        a, b = torch.randn(rows, inner, generator=generator), torch.randn(columns, inner, generator=generator)
        true = a.double() @ b.double().T
        errors += [(product - true).abs().max().item() for product in (torch.nn.functional.linear(a, b), a @ b.T.contiguous())]
    return errors

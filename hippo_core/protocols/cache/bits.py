"""The bits of stored numbers: floats of 32 and 16 bits as whole numbers of as many bits, which bits mean what, and real bit flips.

float32 has 1 sign, 8 exponent and 23 mantissa bits, float16 1, 5 and 10, bfloat16 1, 8 and 7 (IEEE 754; bit 0 is the lowest of the
mantissa). int8 and int4 are two's complement codes on one symmetric grid for each head, as a quantised cache keeps them.
"""

import torch
from torch import Tensor

from hippo_core.protocols.cache.names import Field, Format

FLOATS = {"float32": (torch.float32, torch.int32, 8, 23), "float16": (torch.float16, torch.int16, 5, 10)}
FLOATS["bfloat16"] = (torch.bfloat16, torch.int16, 8, 7)
CODES = {"int8": 8, "int4": 4}


def positions(stored: Format, field: Field | int = "all") -> range:
    """The numbers of a field's bits, 0 the lowest; of a number that bit alone. Codes have no exponent and no mantissa."""
    if isinstance(field, int):
        return range(field, field + 1)
    if stored in CODES:
        return range(CODES[stored]) if field == "all" else range(CODES[stored] - 1, CODES[stored])
    _, _, exponent, mantissa = FLOATS[stored]
    ends = {"all": (0, mantissa + exponent + 1), "mantissa": (0, mantissa), "exponent": (mantissa, mantissa + exponent)}
    return range(*ends.get(field, (mantissa + exponent, mantissa + exponent + 1)))


def bits_of(x: Tensor, stored: Format) -> Tensor:
    """The bits of float32 numbers as a float format stores them: int32 or int16 of x's shape. What is not a number keeps its bits."""
    kind, integer_type, _, _ = FLOATS[stored]
    raw = x.view(torch.int32)
    lost = {"float32": raw, "bfloat16": raw >> 16, "float16": (raw >> 16 & 0x8000) | 0x7C00 | (raw >> 13 & 0x3FF)}[stored]
    return torch.where(x.isnan(), lost.to(integer_type), x.to(kind).view(integer_type))


def of_bits(stored_bits: Tensor, stored: Format) -> Tensor:
    """The float32 numbers of such bits."""
    kind, _, _, _ = FLOATS[stored]
    bits = stored_bits.int()
    wide = {"float32": bits, "bfloat16": bits << 16, "float16": (bits & 0x8000) << 16 | 0x7F800000 | (bits & 0x3FF) << 13}[stored]
    x = stored_bits.contiguous().view(kind).float()
    return torch.where(x.isnan(), wide.view(torch.float32), x)


def flip(x: Tensor, flips: Tensor, stored: Format) -> Tensor:
    """`x` float32 [..., T, D] with bits flipped in the format in which it is stored; `flips` int32 of x's shape has 1 where a bit is.

    Only numbers of which a bit flips change: the others are not even rounded to the format. What flips may become infinite or NaN.
    """
    if stored in CODES:
        most = 2 ** (CODES[stored] - 1)
        scale = (x.abs().amax((-2, -1), keepdim=True) / (most - 1)).clamp(min=torch.finfo(torch.float32).tiny)
        code = (x / scale).round().clamp(-most, most - 1).int() & (2 * most - 1)
        code = code ^ flips
        flipped = torch.where(code >= most, code - 2 * most, code) * scale
    else:
        flipped = of_bits(bits_of(x, stored) ^ flips.to(FLOATS[stored][1]), stored)
    return torch.where(flips != 0, flipped, x)


def draw(like: Tensor, probability: float, bits: range, generator: torch.Generator) -> Tensor:
    """Flips int32 of a tensor's shape: each of these bits with this probability, of its own."""
    flips = torch.zeros(like.shape, dtype=torch.int32)
    for bit in bits:
        value = 1 << bit if bit < 31 else -(1 << 31)
        flips |= (torch.rand(like.shape, generator=generator) < probability).int() * value
    return flips

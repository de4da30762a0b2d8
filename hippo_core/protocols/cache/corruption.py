"""Faults of a cache at rest: between the pass that wrote it and the passes that read it, some of its numbers change.

A cache is the lab's KV tensor [L, 2, H, T, D] (models/kv.py): L layers, keys and values, H heads, T tokens, D features. A fault draws from
a generator of its own, seeded by the seed, the kind and the name of what is damaged; never by the severity: a worse fault is the same
fault, more of it, and whoever repairs gets the same damage.

Severity s from 0 (nothing) to 1 means, for RMS the root mean square of one head's vector of one token:

    gaussian             x + 2 s RMS n, n normal
    dropout_zero         each feature zero with probability s, the same of keys and values
    orthogonal_rotation  all planes of a random basis turned by 90 s degrees
    bitflip              each stored bit flipped with probability 10^(4s - 7), 0 at s = 0
    bitflipish_sparse    each feature with probability .1 s: half change sign, half get +- 8 max(|x|, .001) added
    quant_noise          rounded to max(1, round(2^(7 - 6s) - 1)) levels on either side of 0, one grid a head: 8 bits to ternary
    contiguous_overwrite a share s of the tokens that may be hit, in a row, get another text's keys and values
    targeted             gaussian with 4 s for 2 s, of the named layers and heads alone (default: the first third of the layers)
    stuck_features       a share s / 2 of each head's features keeps the value of the first token
    gain_drift           each head's vector of a token times exp(1.5 s n), n normal
    tokens_swapped       a share s of the tokens, drawn at random, get each other's keys and values, in a ring

The last three were written when the repairs were done; nothing is trained on them. The six kinds of CacheMedic++ (2026) are among these;
there only gaussian has a severity, and its bit flips are `bitflipish_sparse`.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.models.kv import KV
from hippo_core.protocols.cache import bits
from hippo_core.protocols.cache.names import Field, Format, Kind, Parts, Times

KINDS: tuple[str, ...] = get_args(Kind)
JUMP, SMALLEST = 8.0, 1e-3
SCALARS = ("times", "recent", "parts", "stored", "layer_share", "head_share", "mask_seed")  # parameters that a fault takes as they are


@dataclass(frozen=True)
class Corruption:
    """A fault, and where it may strike.

    Args:
        layers, heads: their numbers; None: all (of `targeted` the first third of the layers).
        times: all tokens of the cache, those older than the last `recent`, or those of `window`.
        recent: tokens that old_only spares.
        window: the first token of `window`, and the one behind the last.
        parts: keys, values or both.
        stored: the format whose bits flip; bits: which of them, all, those of a field, or one by its number.
        layer_share, head_share: with which probability a layer is hit, and a head of it, drawn for each cache by itself.
        mask_seed: of that draw; None: the seed of the fault.
    """

    kind: str
    severity: float
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    times: Times = "all_past"
    recent: int = 32
    window: tuple[int, int] = (16, 48)
    parts: Parts = "KV"
    stored: Format = "bfloat16"
    bits: Field | int = "all"
    layer_share: float = 1.0
    head_share: float = 1.0
    mask_seed: int | None = None

    def random_mask(self, shape: Sequence[int], seed: int, name: str) -> Tensor:
        """The layers and heads of the cache `name` that may be hit: bool [L, 1, H, 1, 1], the same for every fault and severity."""
        generator = generator_of("mask", seed if self.mask_seed is None else self.mask_seed, name)
        layers, heads = torch.rand(shape[0], 1, generator=generator), torch.rand(shape[0], shape[2], generator=generator)
        return ((layers < self.layer_share) & (heads < self.head_share)).view(shape[0], 1, shape[2], 1, 1)

    def where(self, shape: Sequence[int]) -> Tensor:
        """Where it may strike in a KV of this shape: bool [L, 2, H, T, 1]. LabError where the cache has no such layer, head or token."""
        layers, _, heads, tokens, _ = shape
        chosen = self.layers
        if self.kind == "targeted" and chosen is None:
            chosen = tuple(range(max(1, layers // 3)))
        mask = torch.ones(layers, 2, heads, tokens, 1, dtype=torch.bool)
        mask &= _chosen(chosen, layers, "layers").view(-1, 1, 1, 1, 1)
        mask &= _chosen(self.heads, heads, "heads").view(1, 1, -1, 1, 1)
        mask &= torch.tensor([part in self.parts for part in "KV"]).view(1, 2, 1, 1, 1)
        if self.times == "window" and self.window[1] > tokens:
            raise LabError(f"window {[*self.window]} ends behind the {tokens} tokens of the cache; end it at {tokens} or before")
        first, end = {"all_past": (0, tokens), "old_only": (0, tokens - self.recent), "window": self.window}[self.times]
        number = torch.arange(tokens).view(1, 1, 1, -1, 1)
        return mask & (number >= first) & (number < end)


def faults(parameters: Any) -> Iterator[tuple[str, Corruption]]:
    """The faults of a cell with the names that their rows have; with bits=each one of every bit."""
    axes = {name: None if (value := getattr(parameters, name)) is None else tuple(value) for name in ("layers", "heads", "window")}
    own: dict[str, Any] = axes | {name: getattr(parameters, name) for name in SCALARS}
    for kind in parameters.kinds:
        for severity in parameters.severities:
            if parameters.bits != "each":
                yield kind, Corruption(kind, severity, **own, bits=parameters.bits)
            elif kind == "bitflip":
                for bit in bits.positions(parameters.stored):
                    yield f"{kind} of bit {bit}", Corruption(kind, severity, **own, bits=bit)
            else:
                yield kind, Corruption(kind, severity, **own)


@dataclass(frozen=True)
class Damage:
    """A damaged cache: `kv` as it is now, and `mask` bool [L, 2, H, T, 1] of the vectors of which a number changed."""

    kv: KV
    mask: Tensor


def _chosen(numbers: tuple[int, ...] | None, count: int, what: str) -> Tensor:
    if wrong := [number for number in numbers or () if not 0 <= number < count]:
        raise LabError(f"{what} {wrong} are none of this model's {count} ({what} 0 to {count - 1})")
    return torch.tensor([numbers is None or number in numbers for number in range(count)])


def generator_of(*names: Any) -> torch.Generator:
    """A generator of these names' own: the same names draw the same numbers, in whatever order generators are made."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def corrupt(kv: KV, corruption: Corruption, seed: int, name: str, donor: KV | None = None) -> Damage:
    """A cache with this fault, drawn by the seed and the cache's name; the KV itself stays as it is. `donor`: another text's KV, of at
    least as many tokens, for contiguous_overwrite."""
    where = corruption.where(kv.shape) & corruption.random_mask(kv.shape, seed, name)
    if corruption.severity == 0:
        return Damage(kv.clone(), torch.zeros_like(where))
    clean = kv.float().cpu()
    generator = generator_of("corruption", seed, corruption.kind, name)
    damaged = _struck(clean, corruption, where, generator, donor)
    damaged = torch.where(where, damaged, clean)
    changed = ((damaged != clean) | damaged.isnan()).any(-1, keepdim=True)
    return Damage(torch.where(changed, damaged, clean).to(kv), changed)


def rms(x: Tensor) -> Tensor:
    """The root mean square of vectors [..., D]: [..., 1]."""
    return x.pow(2).mean(-1, keepdim=True).sqrt()


def flip_probability(severity: float) -> float:
    """With which probability `bitflip` flips a bit."""
    return 10 ** (4 * severity - 7) if severity else 0.0


def quant_levels(severity: float) -> int:
    """How many levels `quant_noise` leaves on either side of 0."""
    return max(1, round(2 ** (7 - 6 * severity) - 1))


def _struck(x: Tensor, fault: Corruption, where: Tensor, generator: torch.Generator, donor: KV | None) -> Tensor:
    """The numbers of a cache, float32 [L, 2, H, T, D], as the fault leaves them, whether it may strike there or not."""
    severity = fault.severity
    match fault.kind:
        case "gaussian" | "targeted":
            most = 4.0 if fault.kind == "targeted" else 2.0
            return x + most * severity * rms(x) * torch.randn(x.shape, generator=generator)
        case "dropout_zero":
            drawn = torch.rand(x[:, :1].shape, generator=generator)
            return x * (drawn >= severity)
        case "orthogonal_rotation":
            width, angle = x.shape[-1], severity * math.pi / 2
            basis = torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64)).Q.float()
            turned = x @ basis
            even, odd = turned[..., 0 : width - 1 : 2].clone(), turned[..., 1:width:2].clone()
            turned[..., 0 : width - 1 : 2] = math.cos(angle) * even - math.sin(angle) * odd
            turned[..., 1:width:2] = math.sin(angle) * even + math.cos(angle) * odd
            return turned @ basis.T
        case "bitflip":
            flips = bits.draw(x, flip_probability(severity), bits.positions(fault.stored, fault.bits), generator)
            return bits.flip(x, flips, fault.stored)
        case "bitflipish_sparse":
            hit, kind, sign = (torch.rand(x.shape, generator=generator) for _ in range(3))
            jump = torch.where(sign < 0.5, -JUMP, JUMP) * x.abs().clamp(min=SMALLEST)
            return torch.where(hit < 0.1 * severity, torch.where(kind < 0.5, -x, x + jump), x)
        case "quant_noise":
            scale = (x.abs().amax((-2, -1), keepdim=True) / quant_levels(severity)).clamp(min=torch.finfo(torch.float32).tiny)
            return (x / scale).round() * scale
        case "contiguous_overwrite":
            assert donor is not None
            may = where.flatten(0, 2).any(0).flatten().nonzero().flatten()
            length = math.ceil(severity * len(may))
            start = int(torch.rand((), generator=generator) * (len(may) - length + 1)) if len(may) else 0
            overwritten = torch.zeros(x.shape[3], dtype=torch.bool)
            overwritten[may[start : start + length]] = True
            return torch.where(overwritten.view(1, 1, 1, -1, 1), donor[:, :, :, : x.shape[3]].float().cpu(), x)
        case "stuck_features":
            stuck = torch.rand((*x.shape[:3], 1, x.shape[-1]), generator=generator) < severity / 2
            return torch.where(stuck, x[..., :1, :], x)
        case "gain_drift":
            return x * (1.5 * severity * torch.randn((*x.shape[:4], 1), generator=generator)).exp()
        case "tokens_swapped":
            order = torch.randperm(x.shape[3], generator=generator)
            moved = order[: round(severity * len(order))]
            source = torch.arange(len(order)).index_copy(0, moved, moved.roll(-1))
            return x[:, :, :, source]
    raise ValueError(f"unknown fault {fault.kind}")

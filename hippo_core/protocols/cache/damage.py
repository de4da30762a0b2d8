"""The faults that a cell asks for, and the damage that they do to probes' caches."""

from collections.abc import Iterator, Sequence
from typing import Any

from hippo_core.protocols.cache.bits import positions
from hippo_core.protocols.cache.cached_probe import Written, donor_of
from hippo_core.protocols.cache.corruption import Corruption, Damage, corrupt


def faults(parameters: Any) -> Iterator[tuple[str, Corruption]]:
    """The faults of a cell with the names that their rows have; with bits=each one of every bit."""
    for kind in parameters.kinds:
        for severity in parameters.severities:
            if kind == "bitflip" and parameters.bits == "each":
                for bit in positions(parameters.stored):
                    yield f"{kind} of bit {bit}", fault(parameters, kind, severity, bit)
            else:
                yield kind, fault(parameters, kind, severity)


def fault(parameters: Any, kind: str, severity: float, bit: int | None = None) -> Corruption:
    """The fault that the parameters of a cell ask for; `bit`: of this bit alone."""
    axes = {name: None if (value := getattr(parameters, name)) is None else tuple(value) for name in ("layers", "heads", "window")}
    own = {name: getattr(parameters, name) for name in ("times", "recent", "parts", "stored")}
    bits = "all" if parameters.bits == "each" else parameters.bits
    return Corruption(kind, severity, **axes, **own, bits=bits if bit is None else bit)


def damaged(written: Sequence[Written], number: int, one: Corruption, seed: int) -> list[Damage]:
    """The damage of each block of a probe; the donor is the longest of the other probes' next blocks that has as many tokens."""
    at = written[number]
    found = []
    for block, kv in enumerate(at.blocks):
        donor = donor_of(written, number, kv.shape[3]) if one.kind == "contiguous_overwrite" else None
        found.append(corrupt(kv, one, seed, at.address(block), donor))
    return found

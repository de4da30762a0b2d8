"""How much of a cache's information is gone: one axis for faults, quantisation and eviction, as a share of 16 bits a number.

A fault is a channel from what was stored to what is read; what is gone is the entropy of the stored numbers less what is read says of them
(Cover & Thomas 2006, chapters 7 and 9), with every stored bit taken as a fair coin:

    dropout_zero, contiguous_overwrite, presses   an erasure: the share of numbers, or tokens
    quant_noise          16 bits less those of its grid, log2(2 levels + 1)
    bitflip              a binary symmetric channel: H(p) of each bit
    bitflipish_sparse    the entropy of what it chose: H(q) + 1.5 q for q of the numbers
    gaussian, targeted   16 bits less the capacity 1/2 log2(1 + 1 / noise^2) where it strikes

A rotation, of a basis that is known, takes nothing: it has no place here.
"""

from math import log2

from hippo_core.errors import unknown
from hippo_core.protocols.cache.corruption import flip_probability, quant_levels

WIDTH = 16  # bits of a stored number


def entropy(p: float) -> float:
    """Of a coin that falls so with probability p, in bits."""
    return 0.0 if p <= 0 or p >= 1 else -p * log2(p) - (1 - p) * log2(1 - p)


def removed(way: str, severity: float) -> float:
    """The share of the information that a fault or a press of this severity takes where it strikes, from 0 to 1."""
    if way not in WAYS:
        raise unknown("way to take information out of a cache", way, WAYS)
    return WAYS[way](severity) if severity else 0.0


def _noise(most: float, severity: float) -> float:
    return 1 - min(WIDTH, 0.5 * log2(1 + (most * severity) ** -2)) / WIDTH


WAYS = {
    **dict.fromkeys(("dropout_zero", "contiguous_overwrite", "streaming_llm", "knorm"), lambda severity: severity),
    "quant_noise": lambda severity: 1 - log2(2 * quant_levels(severity) + 1) / WIDTH,
    "bitflip": lambda severity: entropy(flip_probability(severity)),
    "bitflipish_sparse": lambda severity: (entropy(0.1 * severity) + 0.15 * severity) / WIDTH,
    "gaussian": lambda severity: _noise(2.0, severity),
}

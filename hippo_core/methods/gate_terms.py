"""The terms by which a gate weighs an edge, each from 0 to 1 with a weight, and their sum S."""

import math
from collections.abc import Mapping
from typing import ClassVar

ROUNDING = 1e-9


class Weighed:
    """The base of such terms: a dataclass with a field for each of `weights`."""

    __slots__ = ()
    weights: ClassVar[Mapping[str, float]]

    @property
    def raw(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.weights}

    @property
    def contributions(self) -> dict[str, float]:
        """What each adds to S."""
        return {name: weight * getattr(self, name) for name, weight in self.weights.items()}

    @property
    def score(self) -> float:
        """S."""
        return math.fsum(self.contributions.values())

    def passes(self, threshold: float) -> bool:
        """Whether S is at least the threshold."""
        return self.score >= threshold - ROUNDING


def hub(degree: int, usual: int) -> float:
    """How far a degree exceeds the usual one: 0 up to it, 1 from twice as many on."""
    return min(1.0, max(0, degree - usual) / usual)

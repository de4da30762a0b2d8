"""Fusion: rank traces by a weighted sum of the channels' features. The weights are fitted on validation worlds.

The weights are those of a conditional logit (McFadden 1974): a candidate's probability is the softmax over candidates of w . f(c).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from hippo_core.errors import LabError

Channel = Literal["words", "grams", "key", "minilm", "pieces"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
Features = dict[str, NDArray[np.float64]]  # by name, one number per candidate, (candidates,)
PENALTY = 1e-3


def name_of(channels: Iterable[str]) -> str:
    """The name of a set of channels, such as "words+grams+key"."""
    chosen = set(channels)
    return "+".join(channel for channel in CHANNELS if channel in chosen)


@dataclass(frozen=True)
class Example:
    """The features of a cue's candidates, and the position of the right one among them."""

    features: Features
    right: int


def fused(features: Features, weights: Mapping[str, float]) -> NDArray[np.float64]:
    """The weighted sum of the features [candidates]. LabError for a feature without a weight, which would be left out unnoticed."""
    if lacking := sorted(features.keys() - weights.keys()):
        raise LabError(f"no weight for {', '.join(lacking)}; there are weights for {', '.join(sorted(weights))}: fit them again")
    return np.sum([weights[name] * values for name, values in features.items()], axis=0)


def fit(examples: Sequence[Example]) -> dict[str, float]:
    """Fit the weights that make the right candidates most likely; all examples have the same features. LabError for no examples."""
    if not examples:
        raise LabError("weights are fitted on cues whose right trace is among the candidates; there are none")
    names = sorted(examples[0].features)
    tables = [np.stack([example.features[name] for name in names], axis=1) for example in examples]
    scale = np.concatenate(tables).std(0).clip(min=1e-9)
    tables = [table / scale for table in tables]

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total, slope = PENALTY * float(weights @ weights), 2 * PENALTY * weights
        for table, example in zip(tables, examples, strict=True):
            logs = log_softmax(table @ weights)
            total -= logs[example.right] / len(examples)
            slope = slope + (np.exp(logs) @ table - table[example.right]) / len(examples)
        return total, slope

    result = minimize(loss, np.ones(len(names)), jac=True, method="L-BFGS-B")
    return {name: round(float(weight), 6) for name, weight in zip(names, result.x / scale, strict=True)}

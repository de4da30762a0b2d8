"""How sure a recall is that its best trace answers the cue: a logistic function of what speaks for that trace.

It is fitted on validation worlds, on cues whose trace was there and on the same without it (recipes/confidence.py).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from hippo_core.errors import LabError
from hippo_core.models.artifacts import Owner, folder_of, read_part
from hippo_core.models.language_model import LanguageModel
from hippo_core.retrieval.fusion import Features, name_of

PART = "confidence"
PENALTY = 1e-3
LIKENESS = "_likeness"  # the end of the name of a channel's feature before it is standardised


@dataclass(frozen=True)
class Confidence:
    """A fitted function: the weight of each piece of evidence, and what is added to their sum."""

    weights: Mapping[str, float]
    bias: float

    def of(self, evidence: Mapping[str, float]) -> float:
        """The probability that the best trace answers the cue, from 0 to 1. LabError for evidence without a weight."""
        if lacking := sorted(evidence.keys() - self.weights.keys()):
            raise LabError(f"no weight for {', '.join(lacking)}; fit the confidence again (`make confidence`)")
        return float(expit(self.bias + math.fsum(self.weights[name] * value for name, value in evidence.items())))


def evidence(features: Features, scores: Sequence[float], size: int) -> dict[str, float]:
    """What speaks for the best trace of a ranking, of `size` traces that might have been recalled.

    `features` are of the ranked traces, and `scores` the sums of standardised likenesses, best first.
    Returns its likeness by channel, `lead`, its score less the second's, and `size`, the natural logarithm.
    """
    likeness = {name: float(values[0]) for name, values in features.items() if name.endswith(LIKENESS)}
    lead = scores[0] - (scores[1] if len(scores) > 1 else 0.0)
    return {**likeness, "lead": float(lead), "size": math.log(size)}


def fit(rows: Sequence[Mapping[str, float]], right: NDArray[np.float64], weight: NDArray[np.float64]) -> Confidence:
    """Fit by maximum likelihood with a small penalty on the weights of the features, scaled to a standard deviation of 1.

    `rows` are the evidence of each cue, all of the same names; `right` [N] is 1 where the best trace answered the cue, `weight` [N] how
    much the cue counts. LabError where no cue was answered, or every one.
    """
    if not 0 < right.sum() < len(right):
        raise LabError(f"a confidence is fitted on cues that were answered and on others; got {right.sum():.0f} of {len(right)} answered")
    names = sorted(rows[0])
    table = np.array([[row[name] for name in names] for row in rows])
    middle, scale = table.mean(0), table.std(0).clip(min=1e-9)
    scaled, sign, share = (table - middle) / scale, 2 * right - 1, weight / weight.sum()

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, bias = values[:-1], values[-1]
        margin = sign * (scaled @ weights + bias)
        slope = -share * sign * expit(-margin)
        total = -float(share @ log_expit(margin)) + PENALTY * float(weights @ weights)
        return total, np.append(scaled.T @ slope + 2 * PENALTY * weights, slope.sum())

    solution = minimize(loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B").x
    weights = solution[:-1] / scale
    rounded = {name: round(float(weight), 6) for name, weight in zip(names, weights, strict=True)}
    return Confidence(rounded, round(float(solution[-1] - weights @ middle), 6))


def load_confidence(
    owner: LanguageModel | Owner, channels: Sequence[str], required: bool = False, folder: Path | None = None
) -> Confidence | None:
    """The confidence that was fitted for the sum of these channels, None where there is none. LabError where there is none and it is
    `required`, or it was fitted on other weights."""
    if not required and not ((folder or folder_of(owner)) / f"{PART}.json").is_file():
        return None
    fitted = read_part(owner, PART, folder)["fitted"]
    name = name_of(channels)
    if name in fitted:
        return Confidence(fitted[name]["weights"], fitted[name]["bias"])
    if required:
        raise LabError(f"no confidence was fitted for the channels {name}; {', '.join(fitted)} have one, or use abstention=model")
    return None

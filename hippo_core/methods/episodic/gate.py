"""The write gate: it decides which statements become traces.

    S = alpha * surprise + beta * novelty + gamma * reward + delta * pin;   a statement is written if S > tau

Each term is first standardised by a calibration, z = (term - mean) / sd, so that the weights do not depend on units. A term that did not
vary in the calibration contributes 0. A gate sees only what the teller knew (`GateFeatures`). It sees no later question.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from hippo_core.errors import LabError
from hippo_core.methods.episodic.settings import GateSettings, Term
from hippo_core.store.trace import Action, Decision, Statement

TERMS: tuple[Term, ...] = ("surprise", "novelty", "reward", "pin")
LOWEST = -sys.float_info.max  # a threshold below every S; it is finite because JSON has no infinity
SURE = 700.0  # exp would overflow for a larger |S|


@dataclass(frozen=True, slots=True)
class GateFeatures:
    """What is known of a statement when it is told.

    Args:
        surprise: nats per token of the frozen model, in context; at least 0.
        novelty: 1 minus the similarity to the nearest stored trace, from 0 to 1.
        reward: whether the statement came with a reward.
        pin: whether the teller asked to keep it.

    Raises:
        LabError: `surprise` or `novelty` is not finite.
    """

    surprise: float
    novelty: float
    reward: bool = False
    pin: bool = False

    def __post_init__(self) -> None:
        for name, value in (("surprise", self.surprise), ("novelty", self.novelty)):
            if not math.isfinite(value):
                raise LabError(f"{name} of a told statement is {value}, expected a finite number; mend what measures it")

    def term(self, name: Term) -> float:
        """The value of a term as a number; reward and pin are 0 or 1."""
        return float(getattr(self, name))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Mean and standard deviation of each term over `samples` statements of validation worlds, and the threshold `tau`.

    Use `asdict` to write it as JSON.
    """

    mean: Mapping[str, float]
    sd: Mapping[str, float]
    tau: float
    samples: int = 0


class Gate(Protocol):
    """A gate decides about statements one at a time."""

    def decide(self, statement: Statement, features: GateFeatures, duplicate_of: int | None = None) -> Decision:
        """Decide whether a statement is written.

        Args:
            duplicate_of: the id of the trace that already says the same. A duplicate is never refused: it takes no space and adds evidence.
        """
        ...


@dataclass(frozen=True, slots=True)
class WriteGate:
    """The salience gate: it writes a statement if S is above the calibrated threshold."""

    calibration: Calibration
    weights: GateSettings

    def decide(self, statement: Statement, features: GateFeatures, duplicate_of: int | None = None) -> Decision:
        """The decision, with each term's contribution to S and each term's measured value."""
        contributions = contributions_of(features, self.weights, self.calibration)
        score = math.fsum(contributions.values())
        raw = {name: features.term(name) for name in TERMS}
        action = action_of(score > self.calibration.tau, duplicate_of)
        return Decision(statement, score, contributions, raw, action, duplicate_of)


@dataclass(frozen=True, slots=True)
class RandomGate:
    """The control: it writes this share of the statements, drawn at random.

    The draw depends on seed, world and source only, so the order of statements does not matter.
    """

    write_rate: float
    seed: int

    def __post_init__(self) -> None:
        check_rate(self.write_rate)

    def decide(self, statement: Statement, features: GateFeatures, duplicate_of: int | None = None) -> Decision:
        """The decision, with the random draw (0 to 1) as S and each term's measured value."""
        drawn = Random(f"{self.seed}/{statement.world}/{statement.source}").random()
        raw = {name: features.term(name) for name in TERMS}
        action = action_of(drawn >= 1 - self.write_rate, duplicate_of)
        return Decision(statement, drawn, {"chance": drawn}, raw, action, duplicate_of)


def calibrate(samples: Sequence[GateFeatures], write_rate: float, weights: GateSettings) -> Calibration:
    """Fit a calibration to samples.

    tau is the lowest threshold at which at most `write_rate` of the samples would be written. Samples with equal S are on the same side of
    it.

    Returns:
        Mean and population standard deviation of each term, and tau.

    Raises:
        LabError: there are no samples, or `write_rate` is not from 0 to 1.
    """
    check_rate(write_rate)
    if not samples:
        raise LabError("a gate is calibrated on told statements, got none; give it validation worlds")
    columns = {name: [features.term(name) for features in samples] for name in TERMS}
    mean = {name: math.fsum(values) / len(values) for name, values in columns.items()}
    sd = {name: deviation(values, mean[name]) for name, values in columns.items()}
    plain = Calibration(mean, sd, tau=0.0)
    scores = sorted((math.fsum(contributions_of(features, weights, plain).values()) for features in samples), reverse=True)
    written = math.floor(write_rate * len(scores) + 1e-9)
    return Calibration(mean, sd, scores[written] if written < len(scores) else LOWEST, len(samples))


def contributions_of(features: GateFeatures, weights: GateSettings, calibration: Calibration) -> dict[str, float]:
    """The contribution of each term to S: its weight times its standardised value, or 0 if its standard deviation is 0."""
    contributions = {}
    for name in TERMS:
        sd = calibration.sd[name]
        contributions[name] = weights.weight(name) * (features.term(name) - calibration.mean[name]) / sd if sd else 0.0
    return contributions


def deviation(values: Sequence[float], mean: float) -> float:
    """The population standard deviation. It is exactly 0 if all values are the same."""
    if min(values) == max(values):
        return 0.0
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def salience_of(score: float) -> float:
    """The salience of a trace with this S: 1 / (1 + exp(-S)), from 0 to 1.

    It keeps the order of S and is never negative, as decay and eviction need it.
    """
    return 1 / (1 + math.exp(min(SURE, -score)))


def action_of(written: bool, duplicate_of: int | None) -> Action:
    """The action for a statement: "aggregate" for a duplicate, otherwise "insert" or "refuse"."""
    if duplicate_of is not None:
        return "aggregate"
    return "insert" if written else "refuse"


def check_rate(write_rate: float) -> None:
    """Raise LabError if the write rate is not from 0 to 1."""
    if not 0 <= write_rate <= 1:
        raise LabError(f"a write rate is a share from 0 to 1, got {write_rate}")

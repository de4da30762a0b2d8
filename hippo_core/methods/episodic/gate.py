"""The write gate: it decides which statements become traces.

    S = alpha * surprise + beta * novelty + gamma * reward + delta * pin;   a statement is written if S > tau

Each term is first standardised by a calibration, z = (term - mean) / sd, so that the weights do not depend on units. A term that did not
vary in the calibration contributes 0. A gate sees only what the teller knew, and no later question.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from hippo_core.errors import LabError
from hippo_core.methods.episodic.settings import GateSettings, Term
from hippo_core.store.trace import Action, Decision, Statement

TERMS: tuple[Term, ...] = ("surprise", "novelty", "reward", "pin")
LOWEST = -sys.float_info.max  # a threshold below every S; it is finite because JSON has no infinity
MAX_EXPONENT = 700.0  # exp would overflow for a larger |S|


@dataclass(frozen=True, slots=True)
class GateFeatures:
    """The features of a statement at teaching: its surprise (nats per token of the frozen model), its novelty (0 to 1), whether it
    came with a reward, and whether its teller asked to keep it. LabError where a number is not finite."""

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
    """Mean and standard deviation of each term over `samples` statements of validation worlds, and the threshold `tau`."""

    mean: Mapping[str, float]
    sd: Mapping[str, float]
    tau: float
    samples: int = 0


@dataclass(frozen=True, slots=True)
class WriteGate:
    """The salience gate: it writes a statement if S is above the calibrated threshold."""

    calibration: Calibration
    weights: GateSettings

    def decide(self, statement: Statement, features: GateFeatures, duplicate_of: int | None = None) -> Decision:
        """The decision, with each term's contribution and value. `duplicate_of`: the id of the trace that already says the same, which
        is never refused: it takes no space and adds evidence."""
        contributions = contributions_of(features, self.weights, self.calibration)
        score = math.fsum(contributions.values())
        raw = {name: features.term(name) for name in TERMS}
        action = action_of(score > self.calibration.tau, duplicate_of)
        return Decision(statement, score, contributions, raw, action, duplicate_of)


@dataclass(frozen=True, slots=True)
class RandomGate:
    """The control: it writes this share of the statements, drawn by seed, world and source alone, whatever their order."""

    write_rate: float
    seed: int

    def decide(self, statement: Statement, features: GateFeatures, duplicate_of: int | None = None) -> Decision:
        """The decision, with the random draw (0 to 1) as S."""
        drawn = Random(f"{self.seed}/{statement.world}/{statement.source}").random()
        raw = {name: features.term(name) for name in TERMS}
        action = action_of(drawn >= 1 - self.write_rate, duplicate_of)
        return Decision(statement, drawn, {"chance": drawn}, raw, action, duplicate_of)


Gate = WriteGate | RandomGate


def calibrate(samples: Sequence[GateFeatures], write_rate: float, weights: GateSettings) -> Calibration:
    """Fit a calibration to samples. Its tau is the lowest at which at most `write_rate` of them would be written; those with equal S are on
    the same side of it."""
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
    """The salience of a trace with this S, 1 / (1 + exp(-S)): it keeps the order and is never negative, as decay and eviction need it."""
    return 1 / (1 + math.exp(min(MAX_EXPONENT, -score)))


def action_of(written: bool, duplicate_of: int | None) -> Action:
    """The action for a statement: "aggregate" for a duplicate, otherwise "insert" or "refuse"."""
    if duplicate_of is not None:
        return "aggregate"
    return "insert" if written else "refuse"

"""The write gate: it decides which statements become traces.

    S = alpha * surprise + beta * novelty + gamma * reward + delta * pin;   written where S > tau

Each term is standardised by a calibration first, z = (term - mean) / sd, so that the weights compare like with like whatever the
unit; a term that never varied there contributes 0. A gate sees what the teller knew, `GateFeatures`, and nothing of the questions to come.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from hippo_core.files import LabError
from hippo_core.methods.episodic.settings import GateSettings, Term
from hippo_core.store.trace import Action, Decision, Statement

TERMS: tuple[Term, ...] = ("surprise", "novelty", "reward", "pin")
LOWEST = -sys.float_info.max  # a threshold below every S; finite, as JSON has no infinity
SURE = 700.0  # |S| beyond which exp would overflow


@dataclass(frozen=True, slots=True)
class GateFeatures:
    """What is known of a statement when it is told: `surprise` in nats a token, from 0 (the frozen model's, in context); `novelty` from
    0 to 1, 1 minus the similarity to the nearest stored trace; whether it came with a `reward`; whether the teller asked to keep it."""

    surprise: float
    novelty: float
    reward: bool = False
    pin: bool = False

    def __post_init__(self) -> None:
        for name, value in (("surprise", self.surprise), ("novelty", self.novelty)):
            if not math.isfinite(value):
                raise LabError(f"{name} of a told statement is {value}, expected a finite number; mend what measures it")

    def term(self, name: Term) -> float:
        """A term as a number; reward and pin are 0 or 1."""
        return float(getattr(self, name))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Mean and standard deviation of every term over `samples` statements of validation worlds, and the threshold `tau`. For JSON:
    `asdict`."""

    mean: Mapping[str, float]
    sd: Mapping[str, float]
    tau: float
    samples: int = 0


class Gate(Protocol):
    """Decides about statements one by one."""

    def decide(self, statement: Statement, features: GateFeatures, duplicate_of: int | None = None) -> Decision:
        """`duplicate_of`: the trace that says the same already. A duplicate is never refused: it costs no room and is evidence."""
        ...


@dataclass(frozen=True, slots=True)
class WriteGate:
    """The gate by salience."""

    calibration: Calibration
    weights: GateSettings

    def decide(self, statement: Statement, features: GateFeatures, duplicate_of: int | None = None) -> Decision:
        """The decision with each term's contribution to S, and each term as it was measured."""
        contributions = contributions_of(features, self.weights, self.calibration)
        score = math.fsum(contributions.values())
        raw = {name: features.term(name) for name in TERMS}
        action = action_of(score > self.calibration.tau, duplicate_of)
        return Decision(statement, score, contributions, raw, action, duplicate_of)


@dataclass(frozen=True, slots=True)
class RandomGate:
    """The control: writes this share of statements whatever they are, drawn by seed, world and source, so that order does not matter."""

    write_rate: float
    seed: int

    def __post_init__(self) -> None:
        check_rate(self.write_rate)

    def decide(self, statement: Statement, features: GateFeatures, duplicate_of: int | None = None) -> Decision:
        """S is the draw, from 0 to 1; the terms are kept as they were measured."""
        drawn = Random(f"{self.seed}/{statement.world}/{statement.source}").random()
        raw = {name: features.term(name) for name in TERMS}
        action = action_of(drawn >= 1 - self.write_rate, duplicate_of)
        return Decision(statement, drawn, {"chance": drawn}, raw, action, duplicate_of)


def calibrate(samples: Sequence[GateFeatures], write_rate: float, weights: GateSettings) -> Calibration:
    """Means, deviations (population), and the lowest tau at which no more than `write_rate` of the samples would be written; equal S stand
    together on one side of it. LabError without samples."""
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
    """The contribution of each term to S: its weight times its standardised value."""
    contributions = {}
    for name in TERMS:
        sd = calibration.sd[name]
        contributions[name] = weights.weight(name) * (features.term(name) - calibration.mean[name]) / sd if sd else 0.0
    return contributions


def deviation(values: Sequence[float], mean: float) -> float:
    """The standard deviation of a population; exactly 0 where all values are the same."""
    if min(values) == max(values):
        return 0.0
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def salience_of(score: float) -> float:
    """The salience of a trace with this S: 1 / (1 + exp(-S)), from 0 to 1, in the order of S: decay and eviction need no sign."""
    return 1 / (1 + math.exp(min(SURE, -score)))


def action_of(written: bool, duplicate_of: int | None) -> Action:
    """The action for a statement: aggregate a duplicate, else insert or refuse it."""
    if duplicate_of is not None:
        return "aggregate"
    return "insert" if written else "refuse"


def check_rate(write_rate: float) -> None:
    """LabError for a write rate that is not from 0 to 1."""
    if not 0 <= write_rate <= 1:
        raise LabError(f"a write rate is a share from 0 to 1, got {write_rate}")

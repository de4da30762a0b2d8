"""What was measured when the training loss fell to a level, from the curve of a phase: so methods and variants are compared where they have
learnt the training items equally well (KintaroAI's GENERALIZATION_PROTOCOL.md), not where their steps are used up. There the first batch
under the level counts; here the loss of the same items at every evaluation, with linear interpolation between two."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np


def moment(training: Sequence[float], level: float) -> float:
    """When a training loss first falls to a level, in evaluations: 3.25 is a quarter of the way from 3 to 4. NaN where it never does,
    or lies there from the beginning."""
    for index, (before, after) in enumerate(pairwise(training)):
        if before > level >= after:
            return index + (before - level) / (before - after)
    return float("nan")


def at(values: Sequence[float], when: float) -> float:
    """A value between two evaluations; NaN at no moment."""
    return float(np.interp(when, np.arange(len(values)), values))


def matched(lines: Sequence[Mapping[str, Any]], model: int, tasks: Sequence[str], levels: Sequence[float]) -> dict[str, dict[str, float]]:
    """Of each of these tasks `loss_at_LEVEL` and `accuracy_at_LEVEL` of one model, from the evaluations of a phase. Of several at one step
    the last counts, as a killed run repeats its own."""
    by_step = {line["step"]: (line, line["models"].index(model)) for line in lines if model in line["models"]}
    ordered = [by_step[step] for step in sorted(by_step)]
    result: dict[str, dict[str, float]] = {task: {} for task in tasks}
    for level in levels:
        when = moment([line["training"][index] for line, index in ordered], level)
        for task, own in result.items():
            own[f"loss_at_{level:g}"] = at([line[task]["nats"][index] for line, index in ordered], when)
            own[f"accuracy_at_{level:g}"] = at([line[task]["right"][index] for line, index in ordered], when)
    return result

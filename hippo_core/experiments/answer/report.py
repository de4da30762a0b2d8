"""What a cell that asked says of its result: a sentence and a picture."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hippo_core.experiments.parameters import Parameters

if TYPE_CHECKING:
    import pandas as pd


def sentence(parameters: Parameters, metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    found = metrics["metrics"][parameters.suite]
    how = f" ({', '.join(parameters.overrides)})" if parameters.overrides else ""
    if found["em"] is None:
        return f"{parameters.preset}{how} on {parameters.suite} ({parameters.regime}): nothing could be scored."
    who = f"{parameters.model} with {parameters.preset}{how}"
    right = f"{who} answers {found['em']:.0%} of {found['n_items']} {parameters.suite} questions right"
    bounds = "" if found["low"] is None else f" (95% interval {found['low']:.0%} to {found['high']:.0%}, {found['n_worlds']} worlds)"
    chance = "" if found["chance"] is None else f"; a guess gets {found['chance']:.0%}"
    return f"{right}, {parameters.regime}{bounds}{chance}."


def figure(parameters: Parameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung of the cue, or by kind of question where the suite has one rung only (PNG)."""
    from hippo_core.results.figures import plots

    by = "rung" if len(set(rows["rung"])) > 1 else "kind"
    right = f"answers {rows['score'].mean():.0%} of {rows['score'].count()} {parameters.suite} questions right"
    title = f"{parameters.preset.split('/')[-1]} {right}"
    return plots.png(plots.accuracy_by(rows.assign(preset=parameters.preset, regime=parameters.regime), by, title=title))

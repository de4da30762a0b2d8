"""What a cell of a memory says of its result: a sentence and a picture."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hippo_core.experiments.answer import report as answered
from hippo_core.experiments.parameters import Parameters

if TYPE_CHECKING:
    import pandas as pd


def sentence(parameters: Parameters, metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    if parameters.stage == "test":
        return answered.sentence(parameters, metrics)
    who, telemetry = f"{parameters.model} with {parameters.preset}", metrics["telemetry"]
    if parameters.stage == "teach":
        counts = f"{telemetry['inserted']} stored, {telemetry['aggregated']} added to a trace, {telemetry['refused']} refused"
        return f"{who} was told {telemetry['attempts']} facts of {parameters.suite}: {counts}."
    recalled = "" if telemetry["recalled"] is None else f", {telemetry['recalled']:.0%} of them recalled from a noisy cue"
    return f"{who} replayed {telemetry['items']} traces of {parameters.suite} in {telemetry['cycles']} cycles{recalled}."


def figure(parameters: Parameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung or kind of a test; of a cell that teaches or replays, how salience is spread (PNG)."""
    if parameters.stage == "test":
        return answered.figure(parameters, rows)
    from hippo_core.results.figures import plots, salience

    return plots.png(salience.FIGURES[parameters.stage](rows))

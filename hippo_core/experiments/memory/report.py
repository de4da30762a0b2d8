"""What a cell of a memory says of its result: a sentence and a picture."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hippo_core.experiments.answer import report as answered
from hippo_core.experiments.parameters import Parameters
from hippo_core.results.records import prepared_telemetry

if TYPE_CHECKING:
    import pandas as pd


def sentence(parameters: Parameters, metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    if parameters.stage == "test":
        return answered.sentence(parameters, metrics)
    who, found = f"{parameters.model} with {parameters.preset}", prepared_telemetry(metrics)
    if parameters.stage == "teach":
        kept = f"{found['inserted']} stored, {found['aggregated']} added to a trace, {found['refused']} refused"
        return f"{who} was told {found['attempts']} facts of {parameters.suite}: {kept}."
    recalled = "" if found["recalled"] is None else f", {found['recalled']:.0%} of them recalled from a noisy cue"
    return f"{who} replayed {found['items']} traces of {parameters.suite} in {found['cycles']} cycles{recalled}."


def figure(parameters: Parameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung or kind of a test; of a cell that teaches or replays, how salience is spread (PNG)."""
    if parameters.stage == "test":
        return answered.figure(parameters, rows)
    from hippo_core.results.figures import plots, salience

    return plots.png(salience.FIGURES[parameters.stage](rows))

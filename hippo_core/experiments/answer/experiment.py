"""The experiment `answer`: one suite, one method that needs no teaching, one regime; every question is asked once."""

from typing import Literal

from hippo_core.experiments.answer.report import figure, sentence
from hippo_core.experiments.base import Experiment
from hippo_core.experiments.parameters import Parameters
from hippo_core.files import LabError
from hippo_core.methods.presets import Preset


class AnswerParameters(Parameters):
    """What `02_baseline` can be told."""

    regime: Literal["immediate", "delayed"] = "delayed"

    def check_preset(self, preset: Preset) -> None:
        """See `Parameters`."""
        if preset.taught:
            raise LabError(f"preset {preset.name} is a memory, which is taught before it is asked: run memory preset={preset.name}")


ANSWER = Experiment(
    name="answer",
    notebook="02_baseline",
    parameters=AnswerParameters,
    run="hippo_core.experiments.answer.run",
    suits=lambda preset: not preset.taught,
    sentence=sentence,
    figure=figure,
)

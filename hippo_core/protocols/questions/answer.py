"""The experiment `answer`: one suite, one method that needs no teaching, one regime; every question is asked once."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hippo_core.evaluation.table import ITEMS
from hippo_core.files import COMMAND, LabError
from hippo_core.methods.presets import Preset
from hippo_core.protocols.base.experiment import Experiment
from hippo_core.protocols.base.qa.cell import AskingCell
from hippo_core.protocols.base.qa.kv_size import kv_size
from hippo_core.protocols.base.qa.parameters import AskingParameters, check, forget, is_taught, with_model
from hippo_core.protocols.base.qa.plan import ALWAYS_SAID, AXES, AXIS_DEFAULTS, plan, variants
from hippo_core.suites.folder import is_own

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.report import Part


def sentence(parameters: AskingParameters, metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    means = metrics["metrics"][parameters.suite]
    overrides = f" ({', '.join(parameters.overrides)})" if parameters.overrides else ""
    if means["em"] is None:
        return f"{parameters.preset}{overrides} on {parameters.suite} ({parameters.regime}): nothing could be scored."
    cut = f"; {means['n_cut']} answers cut by the limit of new tokens (max_new_tokens gives more room)" if means.get("n_cut") else ""
    who = f"{parameters.model} with {parameters.preset}{overrides}"
    if is_own(parameters.suite):
        n, found, answered = means["n_items"], means.get("found"), round(means["em"] * means["n_items"])
        facts = "" if found is None else f"right fact found {round(found * n)} of {n}, "
        return f"{who} on {parameters.suite}, {parameters.regime}: {facts}answered {answered} of {n}{cut}."
    right = f"{who} answers {means['em']:.0%} of {means['n_items']} {parameters.suite} questions right"
    bounds = "" if means["low"] is None else f" (95% interval {means['low']:.0%} to {means['high']:.0%}, {means['n_worlds']} worlds)"
    chance = "" if means["chance"] is None else f"; a guess gets {means['chance']:.0%}"
    return f"{right}, {parameters.regime}{bounds}{chance}{cut}."


def figure(parameters: AskingParameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung of the cue, or by kind of question where the suite has one rung only (PNG)."""
    from hippo_core.protocols.questions.figures import plots
    from hippo_core.results.figures import drawing

    by = "rung" if len(set(rows["rung"])) > 1 else "kind"
    right = f"answers {rows['score'].mean():.0%} of {rows['score'].count()} {parameters.suite} questions right"
    title = f"{parameters.preset.split('/')[-1]} {right}"
    return drawing.png(plots.accuracy_by(rows.assign(preset=parameters.preset, regime=parameters.regime), by, title=title))


def pages(run: Path, out: Path) -> "Sequence[Part]":
    """The pages of a report about all answers of a run, whichever experiment that asks they are of."""
    from hippo_core.protocols.questions.report import write_pages

    return write_pages(run, out)


class AnswerParameters(AskingParameters):
    """What `02_baseline` can be told."""

    regime: Literal["immediate", "delayed"] = "delayed"

    def check_preset(self, preset: Preset) -> None:
        if preset.taught:
            raise LabError(f"preset {preset.name} is a memory, taught before it is asked: {COMMAND} run memory preset={preset.name}")


ANSWER = Experiment(
    name="answer",
    notebook="02_baseline",
    parameters=AnswerParameters,
    run="hippo_core.evaluation.run",
    tables=(ITEMS,),
    cell=AskingCell,
    fills=with_model,
    checks=check,
    plans=plan,
    variants=variants,
    always_said=ALWAYS_SAID,
    axes=AXES,
    axis_defaults=AXIS_DEFAULTS,
    suits=lambda values: not is_taught(values["preset"]),
    sentence=sentence,
    figure=figure,
    kv_size=kv_size,
    pages=(pages,),
    forget=forget,
)

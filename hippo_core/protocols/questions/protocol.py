"""The experiments that ask questions: `answer`, of methods that need no teaching, and `memory`, which teaches, replays and tests."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.evaluation.table import ITEMS
from hippo_core.files import sha256
from hippo_core.methods.base import Step
from hippo_core.protocols.base.experiment import Experiment
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.base.qa.cell import AskingCell
from hippo_core.protocols.base.qa.kv_size import kv_size
from hippo_core.protocols.base.qa.parameters import AskingParameters, Resolved, check, forget, is_taught, resolve, with_model
from hippo_core.protocols.base.qa.plan import AXES, AXIS_DEFAULTS, LABEL_FIELDS, STORE, asking_plan, dataset_plan, plan, variants
from hippo_core.protocols.questions.parameters import REGIMES, AnswerParameters, MemoryParameters
from hippo_core.protocols.questions.table import REPLAY, TEACH, TEST
from hippo_core.store.paths import existing
from hippo_core.suites.folder import is_own

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.report import PagePart


def answers_in_words(parameters: AskingParameters, metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    means = metrics["metrics"][parameters.suite]
    overrides = f" ({', '.join(parameters.overrides)})" if parameters.overrides else ""
    if means["em"] is None:
        return f"{parameters.preset}{overrides} on {parameters.suite} ({parameters.regime}): nothing could be scored."
    cut = f"; {means['n_cut']} answers cut by the limit of new tokens (max_new_tokens gives more room)" if means.get("n_cut") else ""
    who = f"{parameters.model} with {parameters.preset}{overrides}"
    if is_own(parameters.suite):
        n, retrieved, answered = means["n_items"], means.get("found"), round(means["em"] * means["n_items"])
        facts = "" if retrieved is None else f"right fact found {round(retrieved * n)} of {n}, "
        return f"{who} on {parameters.suite}, {parameters.regime}: {facts}answered {answered} of {n}{cut}."
    right = f"{who} answers {means['em']:.0%} of {means['n_items']} {parameters.suite} questions right"
    bounds = "" if means["low"] is None else f" (95% interval {means['low']:.0%} to {means['high']:.0%}, {means['n_worlds']} worlds)"
    chance = "" if means["chance"] is None else f"; a guess gets {means['chance']:.0%}"
    return f"{right}, {parameters.regime}{bounds}{chance}{cut}."


def figure_of_answers(parameters: AskingParameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung of the cue, or by kind of question where the suite has one rung only (PNG)."""
    from hippo_core.protocols.questions.figures import plots
    from hippo_core.results.figures import drawing

    by = "rung" if len(set(rows["rung"])) > 1 else "kind"
    right = f"answers {rows['score'].mean():.0%} of {rows['score'].count()} {parameters.suite} questions right"
    title = f"{parameters.preset.split('/')[-1]} {right}"
    return drawing.png(plots.accuracy_by(rows.assign(preset=parameters.preset, regime=parameters.regime), by, title=title))


def pages(run: Path, out: Path) -> "Sequence[PagePart]":
    """The pages of a report about all answers of a run, whichever experiment that asks they are of."""
    from hippo_core.protocols.questions.report import write_pages

    return write_pages(run, out)


ANSWER = Experiment(
    name="answer",
    notebook="02_baseline",
    parameters=AnswerParameters,
    run="hippo_core.evaluation.run",
    tables=(ITEMS,),
    cell=AskingCell,
    fill_defaults=with_model,
    checks=check,
    plans=plan,
    variants=variants,
    label_fields=LABEL_FIELDS,
    axes=AXES,
    axis_defaults=AXIS_DEFAULTS,
    matches=lambda values: not is_taught(values["preset"]),
    sentence=answers_in_words,
    figure=figure_of_answers,
    kv_size=kv_size,
    pages=(pages,),
    forget=forget,
)


def memory_in_words(parameters: "MemoryParameters", metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    if parameters.step == "test":
        return answers_in_words(parameters, metrics)
    who = f"{parameters.model} with {parameters.preset}"
    if parameters.step == "teach":
        [gate] = metrics["gates"].values()
        waiting = f"{gate['routed']} kept until there is more evidence, " if gate["routed"] else ""
        counts = f"{gate['inserted']} stored, {gate['aggregated']} added to a trace, {waiting}{gate['refused']} refused"
        return f"{who} was told {gate['attempts']} facts of {parameters.suite}: {counts}."
    telemetry = metrics["telemetry"]
    recalled = "" if telemetry["recalled"] is None else f", {telemetry['recalled']:.0%} of them recalled from a noisy cue"
    return f"{who} replayed {telemetry['items']} traces of {parameters.suite} in {telemetry['cycles']} cycles{recalled}."


def figure_of_memory(parameters: "MemoryParameters", rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung or kind of a test; of a cell that teaches or replays, how salience is spread (PNG)."""
    if parameters.step == "test":
        return figure_of_answers(parameters, rows)
    from hippo_core.protocols.questions.figures import salience
    from hippo_core.results.figures import drawing

    return drawing.png(salience.FIGURES[parameters.step](rows))


class MemoryCell(AskingCell):
    """A cell that teaches, replays or asks a memory."""

    @property
    def store(self) -> Path:
        """The folder for the store that this cell writes, a part of its record."""
        return self.record / STORE

    @property
    def stores(self) -> dict[str, Path]:
        """The files of the stores that it reads, by the part of the memory that they belong to ("" where it has none): what the cells
        before it taught or replayed, or the file of the user's own."""
        if own := own_store(self.resolved):
            return {"": own}
        parts: Mapping[str, Any] = {name: part.method for name, part in self.resolved.preset.parts.items()}
        return {
            name: existing(self.sources[need(name)] / STORE, self.parameters.session(memory), memory.algorithm())
            for name, memory in parts.items()
        }


def need(part: str) -> str:
    """What the store of a part is called among the needs of a test; of a simple memory `store`."""
    return f"{STORE}:{part}" if part else STORE


def canonical(resolved: Resolved, step: Step | None = None) -> Resolved:
    """The teach or the replay cell that one rests on, or is: equal for all that may share it. A test stays as it is."""
    was: Step = resolved.parameters.step
    step = step or was
    if step == "test":
        return resolved
    usual, mine = resolved.origin.of_step(step), resolved.preset.of_step(step)
    if resolved.origin.auto_encoder:  # which is another one on another machine: what a cell needs says its own
        usual = usual | {"encoder": "auto"} if "encoder" in resolved.preset_overrides else usual
    overrides = _of_suite(resolved)
    overrides += [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in mine.items() if value != usual[key]]
    changed = {"preset": resolved.origin.name, "overrides": overrides, "use_chat_template": None, "step": step, "regime": REGIMES[step]}
    if step != was:
        changed |= {"store_dir": "", "persist": False}
    return resolved.changed(**changed)


def _of_suite(resolved: Resolved) -> list[str]:
    return [f"{name}={json.dumps(value)}" for name, value in sorted(resolved.suite_overrides.items())]


def parts_of(resolved: Resolved) -> dict[str, Resolved]:
    """Each part of a composite as if it were asked alone, by name; a simple memory itself, as ""."""
    overrides = _of_suite(resolved)
    parts = resolved.preset.settings.memories
    return {name: resolved.changed(preset=part.name, overrides=overrides) for name, part in parts.items()} or {"": resolved}


def own_store(resolved: Resolved) -> Path | None:
    """The file of the user's own store that is replayed or asked; LabError where it is not there."""
    parameters = resolved.parameters
    if parameters.step == "teach" or parameters.persist or not parameters.store_dir:
        return None
    memory: Any = resolved.preset.method
    return existing(parameters.folder, parameters.session(memory), memory.algorithm())


def plan_memory(experiment: Experiment, parameters: MemoryParameters) -> CellPlan:
    """The cell with these parameters, behind those that wrote the stores that it reads."""
    resolved = canonical(resolve(parameters))
    step, own = parameters.step, own_store(resolved)
    data = {"data": dataset_plan(resolved)}
    if step == "teach" or own:
        return asking_plan(experiment, resolved, data, step, sha256(own) if own else "")
    asleep = step == "test" and parameters.regime == "after_sleep"
    stores = {}
    for name, part in parts_of(resolved).items():
        writer: Step = "replay" if asleep and "replay" in part.preset.method.steps else "teach"
        stores[need(name)] = plan_memory(experiment, canonical(part, writer).parameters)
    return asking_plan(experiment, resolved, {**data, **stores} if step == "test" else stores, step)


MEMORY = replace(
    ANSWER,
    name="memory",
    notebook="03_memory",
    parameters=MemoryParameters,
    run="hippo_core.protocols.questions.run",
    tables=(TEST, TEACH, REPLAY),
    cell=MemoryCell,
    plans=plan_memory,
    matches=lambda values: is_taught(values["preset"]),
    sentence=memory_in_words,
    figure=figure_of_memory,
)

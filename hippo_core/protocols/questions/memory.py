"""The experiment `memory`: one cell teaches a store, one replays it, one asks with it; each in a process of its own.

    teach <- test (immediate, delayed)
    teach <- replay <- test (after_sleep)

A composite is taught nothing itself: its test stands behind the teach or replay cell of each of its parts, the same that a test of the part
alone needs.

What a teach or a replay cell does not depend on is no part of its parameters: its preset is the one at the bottom of what the tested
preset extends, its overrides are those of the settings that its step reads. So a memory's controls, and the ablations of its recall,
are tested on one taught store.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.files import COMMAND, LabError, root, sha256
from hippo_core.methods.base import Step
from hippo_core.methods.presets import Preset
from hippo_core.protocols.base.experiment import Experiment
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.base.qa.cell import AskingCell
from hippo_core.protocols.base.qa.parameters import AskingParameters, Resolved, is_taught, resolve
from hippo_core.protocols.base.qa.plan import STORE, asking_plan, dataset_plan
from hippo_core.protocols.questions import answer
from hippo_core.protocols.questions.table import REPLAY, TEACH, TEST
from hippo_core.store.paths import existing, require_free

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.methods.base import Memory


def sentence(parameters: "MemoryParameters", metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    if parameters.step == "test":
        return answer.sentence(parameters, metrics)
    who = f"{parameters.model} with {parameters.preset}"
    if parameters.step == "teach":
        [gate] = metrics["gates"].values()
        waiting = f"{gate['routed']} kept until there is more evidence, " if gate["routed"] else ""
        counts = f"{gate['inserted']} stored, {gate['aggregated']} added to a trace, {waiting}{gate['refused']} refused"
        return f"{who} was told {gate['attempts']} facts of {parameters.suite}: {counts}."
    telemetry = metrics["telemetry"]
    recalled = "" if telemetry["recalled"] is None else f", {telemetry['recalled']:.0%} of them recalled from a noisy cue"
    return f"{who} replayed {telemetry['items']} traces of {parameters.suite} in {telemetry['cycles']} cycles{recalled}."


def figure(parameters: "MemoryParameters", rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung or kind of a test; of a cell that teaches or replays, how salience is spread (PNG)."""
    if parameters.step == "test":
        return answer.figure(parameters, rows)
    from hippo_core.protocols.questions.figures import salience
    from hippo_core.results.figures import drawing

    return drawing.png(salience.FIGURES[parameters.step](rows))


REGIMES: dict[Step, str] = {"teach": "delayed", "replay": "after_sleep"}  # that cells of these steps count as


class MemoryParameters(AskingParameters):
    """What `03_memory` can be told. The regime is a test's: whatever it says, a teach cell counts as `delayed` and a replay cell as
    `after_sleep`."""

    preset: str = "memory/hei_nw"
    step: Step = "test"
    store_dir: str = ""  # a folder of stores, from the lab's root; empty: each lies in the record of the cell that wrote it
    session_id: str = ""  # the name of the store; empty: the memory's and the run's
    persist: bool = False  # True: what is taught or replayed is put into store_dir; False: store_dir is read

    def check_preset(self, preset: Preset) -> None:
        if not preset.taught:
            raise LabError(f"preset {preset.name} is no memory, so that nothing can be taught: {COMMAND} run answer preset={preset.name}")
        if preset.settings.memories and (self.step != "test" or self.store_dir):
            parts = ", ".join(f"preset={part.name}" for part in preset.parts.values())
            raise LabError(
                f"preset {preset.name} has no store of its own: step={self.step} and store_dir are for its parts; {COMMAND} run memory "
                f"with {parts}, or test it without store_dir, which brings their stores"
            )
        if "replay" not in preset.method.steps and (self.step == "replay" or (self.step, self.regime) == ("test", "after_sleep")):
            raise LabError(f"preset {preset.name} has no replay, so that nothing sleeps: use step=test regime=delayed")
        if self.persist and self.step == "test":
            raise LabError("a test writes nothing that could be kept: persist=true goes with step=teach or step=replay")
        if self.persist and not self.store_dir:
            raise LabError("persist=true needs a folder to put the store into: give store_dir=FOLDER")
        if self.persist:
            memory: Any = preset.method
            require_free(self.folder, self.session(memory), memory.algorithm())

    def session(self, memory: "Memory | type[Memory]") -> str:
        """The name of the store that the cells of a run share: `hei_smoke` for HEI-NW's in the run smoke."""
        return self.session_id or f"{memory.algorithm().partition('_')[0]}_{self.run_id}"

    @property
    def folder(self) -> Path:
        """That of the user's own stores."""
        return root() / self.store_dir


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


def plan(experiment: Experiment, parameters: MemoryParameters) -> CellPlan:
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
        stores[need(name)] = plan(experiment, canonical(part, writer).parameters)
    return asking_plan(experiment, resolved, {**data, **stores} if step == "test" else stores, step)


MEMORY = replace(
    answer.ANSWER,
    name="memory",
    notebook="03_memory",
    parameters=MemoryParameters,
    run="hippo_core.protocols.questions.run",
    tables=(TEST, TEACH, REPLAY),
    cell=MemoryCell,
    plans=plan,
    suits=lambda values: is_taught(values["preset"]),
    sentence=sentence,
    figure=figure,
)

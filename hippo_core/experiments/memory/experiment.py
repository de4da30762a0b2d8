"""The experiment `memory`: one cell teaches a store, one replays it, one asks with it; each in a process of its own.

    teach <- test (immediate, delayed)
    teach <- replay <- test (after_sleep)

What a teach or a replay cell does not depend on is no part of its parameters: its preset is the one at the bottom of what the tested
preset extends, its overrides are those of the settings that its step reads. So a memory's controls, and the ablations of its recall,
are tested on one taught store.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.experiments.answer import experiment as answer
from hippo_core.experiments.asking.cell import AskingCell
from hippo_core.experiments.asking.parameters import AskingParameters, Resolved, is_taught, resolve
from hippo_core.experiments.asking.plan import asking_plan, dataset_plan
from hippo_core.experiments.base import Experiment
from hippo_core.experiments.memory.tables import REPLAY, TEACH, TEST
from hippo_core.experiments.plan import CellPlan
from hippo_core.files import COMMAND, LabError, root, sha256
from hippo_core.methods.base import Step
from hippo_core.methods.presets import Preset
from hippo_core.store.paths import existing, require_free

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.methods.base import Memory

STORE = "store"  # the folder of a record that holds what was taught


def sentence(parameters: "MemoryParameters", metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    if parameters.step == "test":
        return answer.sentence(parameters, metrics)
    who = f"{parameters.model} with {parameters.preset}"
    if parameters.step == "teach":
        [gate] = metrics["gates"].values()
        counts = f"{gate['inserted']} stored, {gate['aggregated']} added to a trace, {gate['refused']} refused"
        return f"{who} was told {gate['attempts']} facts of {parameters.suite}: {counts}."
    telemetry = metrics["telemetry"]
    recalled = "" if telemetry["recalled"] is None else f", {telemetry['recalled']:.0%} of them recalled from a noisy cue"
    return f"{who} replayed {telemetry['items']} traces of {parameters.suite} in {telemetry['cycles']} cycles{recalled}."


def figure(parameters: "MemoryParameters", rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung or kind of a test; of a cell that teaches or replays, how salience is spread (PNG)."""
    if parameters.step == "test":
        return answer.figure(parameters, rows)
    from hippo_core.results.figures import drawing, salience

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
    def source(self) -> Path | None:
        """The folder of the store that it reads: that of the cell which taught or replayed it, or the file of the user's own."""
        return self.sources["store"] / STORE if "store" in self.sources else own_store(self.resolved)


def canonical(resolved: Resolved, step: Step | None = None) -> Resolved:
    """The teach or the replay cell that one rests on, or is: equal for all that may share it. A test stays as it is."""
    was: Step = resolved.parameters.step
    step = step or was
    if step == "test":
        return resolved
    usual, mine = resolved.origin.of_step(step), resolved.preset.of_step(step)
    if resolved.origin.auto_encoder:  # which is another one on another machine: what a cell needs says its own
        usual = usual | {"encoder": "auto"} if "encoder" in resolved.preset_overrides else usual
    overrides = [f"{name}={json.dumps(value)}" for name, value in sorted(resolved.suite_overrides.items())]
    overrides += [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in mine.items() if value != usual[key]]
    changed = {"preset": resolved.origin.name, "overrides": overrides, "use_chat_template": None, "step": step, "regime": REGIMES[step]}
    if step != was:
        changed |= {"store_dir": "", "persist": False}
    return resolved.changed(**changed)


def own_store(resolved: Resolved) -> Path | None:
    """The file of the user's own store that is replayed or asked; LabError where it is not there."""
    parameters = resolved.parameters
    if parameters.step == "teach" or parameters.persist or not parameters.store_dir:
        return None
    memory: Any = resolved.preset.method
    return existing(parameters.folder, parameters.session(memory), memory.algorithm())


def plan(experiment: Experiment, parameters: MemoryParameters) -> CellPlan:
    """The cell with these parameters, behind the one that wrote the store that it reads."""
    resolved = canonical(resolve(parameters))
    step, own = parameters.step, own_store(resolved)
    data = {"data": dataset_plan(resolved)}
    if step == "teach" or own:
        return asking_plan(experiment, resolved, data, step, sha256(own) if own else "")
    writer: Step = "replay" if step == "test" and parameters.regime == "after_sleep" else "teach"
    store = {"store": plan(experiment, canonical(resolved, writer).parameters)}
    return asking_plan(experiment, resolved, {**data, **store} if step == "test" else store, step)


MEMORY = replace(
    answer.ANSWER,
    name="memory",
    notebook="03_memory",
    parameters=MemoryParameters,
    run="hippo_core.experiments.memory.run",
    tables=(TEST, TEACH, REPLAY),
    cell=MemoryCell,
    plans=plan,
    suits=lambda values: is_taught(values["preset"]),
    sentence=sentence,
    figure=figure,
)

"""The experiment `memory`: one cell teaches a store, one replays it, one asks with it; each in a process of its own.

    teach <- test (immediate, delayed)
    teach <- replay <- test (after_sleep)

What a teach or a replay cell does not depend on is no part of its parameters: its preset is the one at the bottom of what the tested
preset extends, its overrides are those of the settings that its stage reads. So a memory's controls, and the ablations of its recall,
are tested on one taught store.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.experiments.answer import experiment as answer
from hippo_core.experiments.base import Experiment
from hippo_core.experiments.parameters import Parameters, Resolved
from hippo_core.files import COMMAND, LabError, root
from hippo_core.methods.base import Mode
from hippo_core.methods.presets import Preset
from hippo_core.results.records import prepared_telemetry
from hippo_core.store.paths import existing, require_free

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.methods.base import Memory


def sentence(parameters: Parameters, metrics: Mapping[str, Any]) -> str:
    """The result as a sentence, from its numbers."""
    if parameters.stage == "test":
        return answer.sentence(parameters, metrics)
    who, telemetry = f"{parameters.model} with {parameters.preset}", prepared_telemetry(metrics)
    if parameters.stage == "teach":
        counts = f"{telemetry['inserted']} stored, {telemetry['aggregated']} added to a trace, {telemetry['refused']} refused"
        return f"{who} was told {telemetry['attempts']} facts of {parameters.suite}: {counts}."
    recalled = "" if telemetry["recalled"] is None else f", {telemetry['recalled']:.0%} of them recalled from a noisy cue"
    return f"{who} replayed {telemetry['items']} traces of {parameters.suite} in {telemetry['cycles']} cycles{recalled}."


def figure(parameters: Parameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy by rung or kind of a test; of a cell that teaches or replays, how salience is spread (PNG)."""
    if parameters.stage == "test":
        return answer.figure(parameters, rows)
    from hippo_core.results.figures import drawing, salience

    return drawing.png(salience.FIGURES[parameters.stage](rows))


REGIMES: dict[Mode, str] = {"teach": "delayed", "replay": "after_sleep"}  # that cells of these modes count as


class MemoryParameters(Parameters):
    """What `03_memory` can be told. The regime is a test's: whatever it says, a teach cell counts as `delayed` and a replay cell as
    `after_sleep`."""

    preset: str = "memory/hei_nw"
    mode: Mode = "test"
    store_dir: str = ""  # a folder of stores, from the lab's root; empty: each lies in the record of the cell that wrote it
    session_id: str = ""  # the name of the store; empty: the memory's and the run's
    persist: bool = False  # True: what is taught or replayed is put into store_dir; False: store_dir is read

    @property
    def stage(self) -> Mode:
        return self.mode

    def check_preset(self, preset: Preset) -> None:
        if not preset.taught:
            raise LabError(f"preset {preset.name} is no memory, so that nothing can be taught: {COMMAND} run answer preset={preset.name}")
        if self.persist and self.mode == "test":
            raise LabError("a test writes nothing that could be kept: persist=true goes with mode=teach or mode=replay")
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


def canonical(resolved: Resolved, mode: Mode | None = None) -> Resolved:
    """The teach or the replay cell that one rests on, or is: equal for all that may share it. A test stays as it is."""
    was: Mode = resolved.parameters.mode
    mode = mode or was
    if mode == "test":
        return resolved
    usual, mine = resolved.origin.of_stage(mode), resolved.preset.of_stage(mode)
    overrides = [f"{name}={json.dumps(value)}" for name, value in sorted(resolved.suite_overrides.items())]
    overrides += [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in mine.items() if value != usual[key]]
    changed = {"preset": resolved.origin.name, "overrides": overrides, "use_chat_template": None, "mode": mode, "regime": REGIMES[mode]}
    if mode != was:
        changed |= {"store_dir": "", "persist": False}
    return resolved.changed(**changed)


def needs(resolved: Resolved) -> tuple[Resolved, ...]:
    """The cell that wrote the store that this one reads, behind the one that it was copied from."""
    parameters = resolved.parameters
    if parameters.mode == "teach" or reads(resolved):
        return ()
    teach = canonical(resolved, "teach")
    slept = parameters.mode == "test" and parameters.regime == "after_sleep"
    return (teach, canonical(resolved, "replay")) if slept else (teach,)


def reads(resolved: Resolved) -> Path | None:
    """The file of the user's own store that is replayed or asked; LabError where it is not there."""
    parameters = resolved.parameters
    if parameters.mode == "teach" or parameters.persist or not parameters.store_dir:
        return None
    memory: Any = resolved.preset.method
    return existing(parameters.folder, parameters.session(memory), memory.algorithm())


MEMORY = Experiment(
    name="memory",
    notebook="03_memory",
    parameters=MemoryParameters,
    run="hippo_core.experiments.memory.run",
    suits=lambda preset: preset.taught,
    sentence=sentence,
    figure=figure,
    needs=needs,
    canonical=canonical,
    reads=reads,
)

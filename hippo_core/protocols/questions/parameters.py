"""The parameters of the experiments that ask questions, and which of them are refused."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hippo_core.errors import LabError
from hippo_core.files import COMMAND, root
from hippo_core.methods.base import Step
from hippo_core.methods.presets import Preset
from hippo_core.protocols.base.qa.parameters import AskingParameters
from hippo_core.store.paths import require_free

if TYPE_CHECKING:
    from hippo_core.methods.base import Memory


class AnswerParameters(AskingParameters):
    """The parameters of `02_baseline`."""

    regime: Literal["immediate", "delayed"] = "delayed"

    def check_preset(self, preset: Preset) -> None:
        if preset.taught:
            raise LabError(f"preset {preset.name} is a memory, taught before it is asked: {COMMAND} run memory preset={preset.name}")


REGIMES: dict[Step, str] = {"teach": "delayed", "replay": "after_sleep"}  # that cells of these steps count as


class MemoryParameters(AskingParameters):
    """The parameters of `03_memory`. The regime is a test's: whatever it says, a teach cell counts as `delayed` and a replay cell as
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

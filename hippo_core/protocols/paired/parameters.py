"""The parameters of the experiment `paired`, and which are refused."""

from typing import Annotated, Any, Literal

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.methods.presets import load_preset
from hippo_core.plugins import is_path, located
from hippo_core.protocols.base.experiment import Experiment, checked
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.paired.conditions import CONDITIONS, MEMORY, RETRIEVAL
from hippo_core.protocols.paired.settings import COMMAND, settings_of
from hippo_core.protocols.paired.suite import read_suite

ANSWERS = "smollm2-135m"  # the model of the profile llm where none is named


class PairedParameters(Parameters):
    """The parameters of `09_paired_evaluation`."""

    suite: str = "data/paired/everyday"
    conditions: list[str] = Field(default=list(CONDITIONS), min_length=1)
    memory: str = "memory/hei_nw"
    profile: Literal["offline", "llm"] = "offline"
    answer_mode: Literal["auto", "deterministic", "llm"] = "auto"
    encoder: Literal["minilm", "own"] = "minilm"
    repeats: Annotated[int, Field(ge=0, le=100)] = 0
    n: Annotated[int, Field(ge=0)] = 0


def fill(values: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The values with a model that answers, where the profile asks for one and none is named."""
    if values.get("profile") == "llm" and "model" not in values:
        return {**values, "model": ANSWERS}, f"model={ANSWERS} answers, as none is named"
    return values, ""


def check(experiment: Experiment, values: dict[str, Any], where: str) -> Any:
    """The parameters, if every name in them is right and the suite can be read; LabError with what is legal otherwise."""
    parameters = checked(experiment, values, where)
    settings_of(parameters, 1).require()
    if parameters.memory.startswith(COMMAND):
        raise LabError(f"{where}: a cell runs no program; ask one by `hippo paired run SUITE --memory '{parameters.memory}'`")
    modules_of(parameters)
    read_suite(parameters.suite)
    return parameters


def modules_of(parameters: Any) -> list[str]:
    """The modules of what the conditions recall by. LabError for an unknown memory."""
    names = [RETRIEVAL[name] for name in parameters.conditions if name in RETRIEVAL]
    names += [parameters.memory] if MEMORY in parameters.conditions else []
    return [located(name, f"memory {name}") if is_path(name) else load_preset(name, {}).path.partition(":")[0] for name in names]

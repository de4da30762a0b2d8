"""What experiments in which a model sleeps can be told, and what of it is refused."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from hippo_core.discovery import find_member
from hippo_core.errors import LabError
from hippo_core.methods.episodic.settings import Policy
from hippo_core.methods.presets import Preset
from hippo_core.protocols.base.experiment import Experiment, load_experiment
from hippo_core.protocols.base.parameters import Positive
from hippo_core.protocols.base.qa.parameters import AskingParameters, check

UPDATE_RULES = "hippo_core.training.consolidation.update_rules"


class SleepingParameters(AskingParameters):
    """What every such notebook can be told."""

    suite: str = "consolidation"
    preset: str = "memory/hei_nw"
    way: str = "lora"  # into the model: a file of hippo_core/training/consolidation/update_rules
    wordings: Positive = 40  # questions that are made of a trace
    restatements: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of questions in whose place a trace is restated as a whole
    distilled: Annotated[float, Field(ge=0, le=1)] = (
        0.0  # share of the loss that is the unchanged model's answer with the trace in its prompt
    )
    steps: Positive | None = 200  # of training, a sleep; None: so many that each trace is rehearsed `rehearsals` times
    rehearsals: Positive = 640  # of each trace, a sleep, where steps is None: what took 50 facts to .90
    rank: Positive = 16
    rate: float | None = None  # of learning; None: the way's own
    first_block: Annotated[int, Field(ge=0)] | None = None  # that a sleep may change; None: a third in, so that keys find what was stored
    in_context: Positive = 100  # questions with other facts in the prompt

    def check_preset(self, preset: Preset) -> None:
        if not preset.taught or preset.settings.memories:
            raise LabError(f"preset {preset.name} has no store of its own to consolidate: use preset=memory/hei_nw")

    def of_teaching(self) -> Any:
        """The parameters of the cell that taught the store."""
        shared = {name: getattr(self, name) for name in AskingParameters.model_fields if name != "regime"}
        memory: Any = load_experiment("memory").parameters
        return memory(**shared, step="teach")


def check_sleep(experiment: Experiment, values: dict[str, Any], where: str) -> Any:
    """The parameters, if they are right and there is such a way into the model; LabError with what is legal otherwise."""
    parameters: Any = check(experiment, values, where)
    update_rule = find_member(UPDATE_RULES, parameters.way, f"{where}: way")
    if update_rule.constants.get("of_groups") and "groups" not in type(parameters).model_fields:
        raise LabError(f"{where}: way={parameters.way} learns in groups; take another, or the experiment sleeps")
    return parameters


def variants(experiment: Experiment, values: dict[str, Any], where: str) -> Iterable[Any]:
    """The parameters of a grid's values."""
    values = {name: value for name, value in values.items() if name not in ("regime", "encoder")}
    yield check_sleep(experiment, values, where)


class ConsolidationParameters(SleepingParameters):
    """What `04_consolidation` can be told."""

    cycles: Annotated[int, Field(ge=1, le=3)] = 1
    policy: Policy = "uniform"
    replay: bool = True  # False: nothing is trained, so that nothing may change
    other_suites: Annotated[int, Field(ge=0)] = 20  # questions of each suite that no sleep practises (bAbI, spatial), facts in the prompt
    lost: Annotated[float, Field(ge=0, le=1)] = 0.1  # of reading on validation lessons; a cycle that loses more is rolled back


class SleepsParameters(SleepingParameters):
    """What `04_sleeps` can be told."""

    n: Positive = 100
    groups: Positive = 10  # of new facts, a sleep each
    group_size: Positive | None = None  # worlds a group; None: all worlds, in equal parts
    rehearse_earlier: Annotated[float, Field(ge=0, lt=1)] = 0.5  # share of a step's questions that are about earlier groups
    questions: Positive = 64  # rehearsed in a step
    apart: bool = False  # True: every group is learnt from the unchanged model

"""The parameters of the experiment `forgetting`, and which of them are refused."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from hippo_core.discovery import find_member
from hippo_core.errors import LabError, unknown
from hippo_core.methods.episodic.settings import Policy
from hippo_core.models.spec import validated
from hippo_core.protocols.base.experiment import Experiment
from hippo_core.protocols.base.parameters import Parameters, Positive, require_run_id

FILE = ".jsonl"  # how the name of a task of one's own ends
LEARNERS = "hippo_core.protocols.forgetting.learners"
NAMES = ("parity", "copy", "reverse", "majority", "add", "sub", "mul", "squares")  # of the lab's tasks (tasks.py, which imports torch)
Share = Annotated[float, Field(ge=0, le=1)]
TASKS = ["copy", "reverse", "majority", "parity"]  # last what 128 strings do not teach: learnt by heart, it would hinder all that follow


class ForgettingParameters(Parameters):
    """The parameters of `08_forgetting`."""

    model: str = "formal"  # of this experiment, not of params/models
    fc1: Positive | None = None  # band of the MLP's first matrix that is kept, in hidden units; None: all of it
    fc2: Positive | None = None  # likewise of its second
    sort: Annotated[int, Field(ge=0)] = 0  # places over which each block's output is mixed; 0: none
    method: str = "none"
    tasks: list[str] = TASKS  # in the order in which they are learnt; a path that ends in .jsonl is a task of one's own
    control: Literal["none", "one_token", "shuffled"] = "none"
    subset: Annotated[float, Field(gt=0, le=1)] = 1.0  # share of each task's training items that is learnt from
    stored: Share = 0.05  # share of a task's training items that replay and forever keep
    rehearsed: Annotated[int, Field(ge=0)] = 8  # items that replay, forever and generative add to a batch
    policy: Policy = "uniform"
    strength: Annotated[float, Field(ge=0)] | None = None  # how much what was learnt weighs; None: the method's own
    rank: Positive = 16  # of a task's update, of lora
    inits: Positive = 3  # initialisations, which learn in step
    steps: Positive = 400  # of a phase at most
    early_stop: bool = True  # a model ends a phase when it answers 99% of the validation items
    optimizer: Literal["reset", "kept"] = "reset"
    batch: Positive = 32
    rate: Annotated[float, Field(gt=0)] = 0.001
    decay: Annotated[float, Field(ge=0)] = 0.1
    bf16: bool = False  # linear layers multiply in bfloat16: a fifth quicker on a processor that can
    compiled: bool = False  # steps are translated for this processor (torch.compile): half as quick again with bf16, after some 20 s
    checkpoint_mb: Annotated[int, Field(ge=0)] = 32  # MB of checkpoints of phases that a record keeps, the latest; 0: none
    split: Literal["test", "val"] = "test"


def check(experiment: Experiment, values: dict[str, Any], where: str) -> ForgettingParameters:
    """The parameters, if every name and type is right and the tasks are different ones."""
    parameters: Any = validated(experiment.parameters, values, where)
    require_run_id(parameters)
    names = [Path(task).stem if task.endswith(FILE) else task for task in parameters.tasks]
    if not names or len(set(names)) < len(names):
        raise LabError(f"{where}: expected different tasks, at least one, got {parameters.tasks}")
    for task in parameters.tasks:
        if task not in NAMES and not task.endswith(FILE):
            raise unknown(f"{where}: task", task, (*NAMES, f"PATH{FILE}"))
    if missing := [task for task in files(parameters) if not Path(task).is_file()]:
        raise LabError(f"{where}: no such task file: {missing[0]}")
    find_member(LEARNERS, parameters.method, f"{where}: method")
    return parameters


def files(parameters: ForgettingParameters) -> list[str]:
    """The paths of the tasks that are files of one's own."""
    return [task for task in parameters.tasks if task.endswith(FILE)]

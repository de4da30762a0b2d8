"""The parameters of the experiment `conversation`, and which are refused."""

from typing import Any, Literal

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.protocols.base.experiment import Experiment, checked
from hippo_core.protocols.base.parameters import Parameters, Positive
from hippo_core.protocols.conversation.budget import budget_name
from hippo_core.protocols.conversation.generator import LENGTHS
from hippo_core.protocols.conversation.techniques import require_writer, technique_members

DRY = 2  # dialogues of a dry run
TECHNIQUES = ["none", "full", "oracle", "random", "recency", "summary", "bm25", "actr"]


class ConversationParameters(Parameters):
    """The parameters of `07_conversation`."""

    n: Positive = 12
    techniques: list[str] = Field(default=TECHNIQUES, min_length=1)
    budgets: list[int | str] = Field(default=["turns", 128], min_length=1)
    lengths: list[int] = Field(default=list(LENGTHS), min_length=1)
    dialogues: str = ""
    split: Literal["test", "val"] = "test"

    @property
    def count(self) -> int:
        """How many dialogues are drawn."""
        return min(self.n, DRY) if self.dry_run else self.n


def check(experiment: Experiment, values: dict[str, Any], where: str) -> Any:
    """The parameters, if every technique and budget exists and none is named twice; LabError with what is legal otherwise."""
    parameters = checked(experiment, values, where)
    technique_members(parameters.techniques)
    require_writer(parameters.techniques, parameters.model)
    budgets = [budget_name(budget) for budget in parameters.budgets]
    if len(set(budgets)) < len(budgets):
        raise LabError(f"{where}: budgets names one of {parameters.budgets} twice")
    if min(parameters.lengths) < min(LENGTHS):
        raise LabError(f"{where}: lengths: expected {min(LENGTHS)} turns or more, got {min(parameters.lengths)}")
    return parameters

"""The experiment `conversation`: dialogues longer than a window, questions about them, and techniques that share one budget."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.files import sha256
from hippo_core.methods.presets import load_preset
from hippo_core.models import checksums
from hippo_core.protocols.base.experiment import Experiment, checked, planned
from hippo_core.protocols.base.parameters import Parameters, Positive
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.conversation.budget import budget_name
from hippo_core.protocols.conversation.generator import LENGTHS
from hippo_core.protocols.conversation.located import files
from hippo_core.protocols.conversation.table import ROWS
from hippo_core.protocols.conversation.techniques import technique_members

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section


DRY = 2  # dialogues of a dry run
TECHNIQUES = ["none", "full", "oracle", "random", "recency", "summary", "bm25", "actr"]


class ConversationParameters(Parameters):
    """The parameters of `07_conversation`."""

    n: Positive = 12
    techniques: list[str] = Field(default=TECHNIQUES, min_length=1)
    budgets: list[int | Literal["turns", "full"]] = Field(default=["turns", 128], min_length=1)
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
    budgets = [budget_name(budget) for budget in parameters.budgets]
    if len(set(budgets)) < len(budgets):
        raise LabError(f"{where}: budgets names one of {parameters.budgets} twice")
    if min(parameters.lengths) < min(LENGTHS):
        raise LabError(f"{where}: lengths: expected {min(LENGTHS)} turns or more, got {min(parameters.lengths)}")
    return parameters


def plan(experiment: Experiment, parameters: Any) -> CellPlan:
    """The cell with these parameters, with a label that names what is not as usual."""
    cell, usual = planned(experiment, parameters), ConversationParameters().values()
    own = {name: value for name, value in parameters.values().items() if value != usual[name] and name != "threads"}
    labels = [f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}" for name, value in own.items()]
    read = {f"dialogues {path}": sha256(path) for path in files(Path(parameters.dialogues))} if parameters.dialogues else {}
    techniques = technique_members(parameters.techniques)
    presets = [load_preset(technique.constants["preset"]) for technique in techniques if "preset" in technique.constants]
    recalled = [[preset.of_step("test"), checksums.fitted(preset.method.weights, parameters.model)] for preset in presets]
    rests_on = {**cell.inputs, **read, **({"presets": checksums.digest(recalled)} if presets else {})}
    modules = dict.fromkeys(
        [*cell.modules, *(technique.module for technique in techniques), *(name for preset in presets for name in preset.modules)]
    )
    return replace(cell, label=" ".join(["conversation", *labels]), inputs=rests_on, modules=tuple(modules))


def sentence(parameters: ConversationParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    from hippo_core.protocols.conversation.report import in_words

    return in_words(parameters.model, metrics["techniques"])


def figure(parameters: ConversationParameters, rows: "pd.DataFrame") -> bytes:
    """Exact match over what was shown, a line a technique (PNG)."""
    from hippo_core.protocols.conversation import figures as conversation
    from hippo_core.results.figures import drawing

    return drawing.png(conversation.curve(rows))


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """The sections of a report: techniques side by side, the curve, positions, breakdowns, pairs."""
    from hippo_core.protocols.conversation.report import sections

    return sections(tables)


CONVERSATION = Experiment(
    name="conversation",
    notebook="07_conversation",
    parameters=ConversationParameters,
    run="hippo_core.protocols.conversation.run",
    tables=(ROWS,),
    checks=check,
    plans=plan,
    label_fields=("seed",),
    axes={"sizes": "n", "models": "model", "seeds": "seed", "splits": "split"},
    sentence=sentence,
    figure=figure,
    sections=sections,
)

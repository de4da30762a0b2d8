"""The experiment `conversation`: dialogues longer than a window, questions about them, and techniques that share one budget."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from hippo_core.files import sha256
from hippo_core.methods.presets import load_preset
from hippo_core.models import checksums
from hippo_core.protocols.base.experiment import Experiment, planned
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.conversation.located import files
from hippo_core.protocols.conversation.parameters import ConversationParameters, check
from hippo_core.protocols.conversation.table import ROWS
from hippo_core.protocols.conversation.techniques import technique_members

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section


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


def work(parameters: ConversationParameters) -> float:
    """Turns that techniques go through, one budget after the other."""
    turns = parameters.count * fmean(parameters.lengths)
    return turns * len(parameters.techniques) * len(parameters.budgets)


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
    work=work,
    axes={"sizes": "n", "models": "model", "seeds": "seed", "splits": "split"},
    sentence=sentence,
    figure=figure,
    sections=sections,
)

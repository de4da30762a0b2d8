"""The experiment `sleeps`: it needs the store that a memory was taught, and the model sleeps on one group of its facts after another."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hippo_core.protocols.base.parameters import Positive
from hippo_core.protocols.consolidation.sleeping import SLEEPING, SleepingParameters
from hippo_core.protocols.consolidation.sleeps_table import ROWS

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section


class SleepsParameters(SleepingParameters):
    """What `04_sleeps` can be told."""

    n: Positive = 100
    groups: Positive = 10  # of new facts, a sleep each
    group_size: Positive | None = None  # worlds a group; None: all worlds, in equal parts
    rehearse_earlier: Annotated[float, Field(ge=0, lt=1)] = 0.5  # share of a step's questions that are about earlier groups
    questions: Positive = 64  # rehearsed in a step
    apart: bool = False  # True: every group is learnt from the unchanged model


def sentence(parameters: SleepsParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    found, damage, slept = metrics["stream"]["score"], metrics["damage"], metrics["sleep"]
    reading, text = (damage[probe]["difference"] for probe in ("in_context", "text"))
    lost = f"reading other facts changed by {100 * reading:+.1f} points, plain text by {text:+.3f} nats a token"
    who = f"With its memory off {parameters.model} answers {found['just_learnt']:.0%} of a group's questions just after its sleep"
    if parameters.apart:
        return f"{who} ({parameters.way}, each from the unchanged model), {found['before']:.0%} before; after the last {lost}."
    kept = "none of the first group had been learnt"
    if found["first_group_kept"] is not None:
        kept = f"of what was right in the first group {found['first_group_kept']:.0%} still is"
    end = f"and {found['at_the_end']:.0%} of all after {slept['sleeps']} sleeps in a row ({parameters.way})"
    return f"{who}, {end}, {found['before']:.0%} before; {kept}; {lost}."


def figure(parameters: SleepsParameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy on each group after each sleep, as a heat map (PNG)."""
    from hippo_core.protocols.consolidation.sleeps_table import matrix
    from hippo_core.results.figures import drawing, sleeps

    return drawing.png(sleeps.heat_map(matrix(rows)))


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """What a report says: all cells side by side, and the matrix of each."""
    from hippo_core.protocols.consolidation.sleeps_report import found

    return found(tables)


SLEEPS = replace(
    SLEEPING,
    name="sleeps",
    notebook="04_sleeps",
    parameters=SleepsParameters,
    run="hippo_core.protocols.consolidation.stream",
    tables=(ROWS,),
    sentence=sentence,
    figure=figure,
    sections=sections,
)

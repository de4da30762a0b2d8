"""The experiment `consolidation`: it needs the store that a memory was taught, and asks before and after the model slept on it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hippo_core.methods.episodic.settings import Policy
from hippo_core.protocols.consolidation.sleeping import SLEEPING, SleepingParameters
from hippo_core.protocols.consolidation.table import ROWS, TITLES

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section


class ConsolidationParameters(SleepingParameters):
    """What `04_consolidation` can be told."""

    cycles: Annotated[int, Field(ge=1, le=3)] = 1
    policy: Policy = "uniform"
    replay: bool = True  # False: nothing is trained, so that nothing may change
    other_suites: Annotated[int, Field(ge=0)] = 20  # questions of each suite that no sleep practises (bAbI, spatial), facts in the prompt
    lost: Annotated[float, Field(ge=0, le=1)] = 0.1  # of reading on validation lessons; a cycle that loses more is rolled back


def sentence(parameters: ConsolidationParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    last = list(metrics["metrics"]["off"])[-1]
    before, after = (metrics["metrics"]["off"][stage] for stage in ("pre", last))
    kept, text = (metrics["changes"][probe][last]["difference"] for probe in ("in_context", "text"))
    slept = metrics["sleep"]
    right = f"answers {after['mean']:.0%} of {after['n']} questions after {slept['seconds']:.0f} s of sleep ({parameters.way})"
    lost = f"reading other facts changed by {100 * kept:+.1f} points, plain text by {text:+.3f} nats a token"
    return f"With its memory off {parameters.model} {right}, {before['mean']:.0%} before; {lost}."


def figure(parameters: ConsolidationParameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy of every probe before and after (PNG)."""
    from hippo_core.protocols.consolidation import figures as consolidation
    from hippo_core.results.figures import drawing

    return drawing.png(consolidation.before_and_after(rows, TITLES))


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """What a report says: every probe before and after, by way."""
    from hippo_core.protocols.consolidation.report import found

    return found(tables)


CONSOLIDATION = replace(
    SLEEPING,
    name="consolidation",
    notebook="04_consolidation",
    parameters=ConsolidationParameters,
    run="hippo_core.protocols.consolidation.run",
    tables=(ROWS,),
    sentence=sentence,
    figure=figure,
    sections=sections,
)

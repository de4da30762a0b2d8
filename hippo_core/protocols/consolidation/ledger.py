"""The ledger of a consolidation: what was spent on each trace of the store, and what came of it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.consolidation.table import ABOUT_STORE, SPENT, changes
from hippo_core.results.frames import Frame
from hippo_core.store.trace import Trace
from hippo_core.suites.types import World
from hippo_core.training.consolidation.sleep import ComputeUsed

FILE = "ledger.csv"


class Ledger:
    """What all cycles so far spent on each trace, by its id: rehearsals, trained tokens and seconds.

    Args:
        traces: those of each world. A question is about the traces that were made of its gold facts.
    """

    def __init__(self, worlds: Sequence[World], traces: Mapping[str, Sequence[Trace]]) -> None:
        self.traces = {trace.id: trace for of_world in traces.values() for trace in of_world}
        ids = {trace.source: trace.id for trace in self.traces.values()}
        self.about = {item.id: [ids[fact] for fact in item.gold_facts if fact in ids] for world in worlds for item in world.items}
        self.spent: dict[int, dict[str, float]] = {trace: dict.fromkeys(map(str, SPENT), 0.0) for trace in self.traces}

    def add(self, spent: Mapping[int, ComputeUsed], seconds: float) -> None:
        """A cycle more. A trace's share of its seconds is its share of the tokens."""
        total = sum(cost.tokens for cost in spent.values())
        for trace, cost in spent.items():
            values = {"rehearsals": cost.rehearsals, "tokens": cost.tokens, "seconds": seconds * cost.tokens / total}
            self.spent[trace] = {name: self.spent[trace][name] + value for name, value in values.items()}

    def of_row(self, row: Mapping[str, Any]) -> dict[str, float]:
        """What was spent on the traces that a row's question is about; NaN where it is about none of this store."""
        traces = self.about.get(row["question_id"], []) if row["probe"] in ABOUT_STORE else []
        return {name: sum(self.spent[trace][name] for trace in traces) if traces else math.nan for name in SPENT}

    def table(self, rows: Frame) -> pd.DataFrame:
        """A row a trace.

        Returns:
            `questions` about it, the share of them that is right `before` and `after` with the memory off, the questions `won` by replay
            (right after that were wrong before), what was spent, and the collateral damage of the whole sleep against the unchanged model:
            `reading_lost` (share of answers about other facts in the prompt) and `text_lost` (nats a token of plain text).
        """
        off = rows[rows["probe"] == "off"]
        stages = list(dict.fromkeys(off["stage"]))
        before, after = (off[off["stage"] == stage].set_index("question_id")["score"] for stage in (stages[0], stages[-1]))
        changed = changes(rows)
        damage = {
            "reading_lost": -changed["in_context"][stages[-1]]["difference"],
            "text_lost": changed["text"][stages[-1]]["difference"],
        }
        lines = []
        for number, trace in self.traces.items():
            asked = [question for question, about in self.about.items() if number in about]
            first, last = before.reindex(asked), after.reindex(asked)
            answered = {"before": first.mean(), "after": last.mean(), "won": int((last > first).sum())}
            identity = {"trace": number, "world": trace.world, "source": trace.source, "text": trace.text, "questions": len(asked)}
            lines.append(identity | answered | self.spent[number] | damage)
        return pd.DataFrame(lines)

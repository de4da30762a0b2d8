"""summary: a rolling extractive summary; window_summary: the same of what has left a window of the last turns.

After `every` turns the summary is made anew of the last summary and the new turns, so that what was once left out does not come back.
It keeps the turns that together hold most content words for their tokens: greedily, each time that with most new ones a token (maximum
coverage: Lin and Bilmes 2011, section 3). The question does not matter.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from hippo_core.protocols.conversation.budget import ContextBudget
from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.entities import content
from hippo_core.protocols.conversation.techniques.base import Choose, Chosen, Share, Technique, TechniqueSettings, TurnQuery, turns_of
from hippo_core.protocols.conversation.techniques.plain import newest


class SummarySettings(TechniqueSettings):
    """After how many turns the summary is renewed, and the share of the budget that the last turns get."""

    every: Annotated[int, Field(ge=1)] = 10
    window: Share = 0.0


def cover(candidates: Sequence[int], words: Sequence[frozenset[str]], budget: ContextBudget) -> tuple[int, ...]:
    """Turns in order that fit the budget, chosen by new content words a token; of equals the newer."""
    chosen: list[int] = []
    covered: set[str] = set()
    left = list(candidates)
    while left:
        best = max(left, key=lambda index: (len(words[index] - covered) / max(1, budget.cost[index]), index))
        left.remove(best)
        if not words[best] - covered:
            break
        if len(budget.fill([*chosen, best])) > len(chosen):
            chosen.append(best)
            covered |= words[best]
    return tuple(sorted(chosen))


def rolling(end: int, words: Sequence[frozenset[str]], budget: ContextBudget, every: int) -> tuple[int, ...]:
    """The summary of the turns before `end`, renewed every so many turns."""
    kept: tuple[int, ...] = ()
    for first in range(0, end, every):
        kept = cover([*kept, *range(first, min(first + every, end))], words, budget)
    return kept


class Summary(Technique):
    """Shows a rolling summary of all turns."""

    name = "summary"
    settings = SummarySettings()

    def open(self, dialogue: Dialogue) -> Choose:
        words = [frozenset(content(turn.text)) for turn in dialogue.turns]
        known: dict[tuple[int | None, int | None], Chosen] = {}

        def choose(asked: TurnQuery, budget: ContextBudget) -> Chosen:
            size = budget.turns, budget.tokens
            if size not in known:
                known[size] = turns_of(dialogue, self._indices(len(words), words, budget))
            return known[size]

        return choose

    def _indices(self, count: int, words: Sequence[frozenset[str]], budget: ContextBudget) -> tuple[int, ...]:
        last = newest(budget.share(self.settings.window), range(count)) if self.settings.window else ()
        rest = budget.less(last)
        return (*rolling(count - len(last), words, rest, self.settings.every), *last)

"""Techniques that rank nothing: no turn, all turns, the evidence, random turns, and the last turns whole, pruned or in fewer words."""

from random import Random
from typing import Annotated

from pydantic import Field

from hippo_core.live.answer import FUNCTION_WORDS
from hippo_core.protocols.conversation.budget import ContextBudget
from hippo_core.protocols.conversation.dialogue import Dialogue, Turn
from hippo_core.protocols.conversation.entities import OPENERS, content, names
from hippo_core.protocols.conversation.techniques.base import Choose, Chosen, Share, Technique, TechniqueSettings, TurnQuery, turns_of


class PruningSettings(TechniqueSettings):
    """How many content words a turn that pruning keeps has at least."""

    least: Annotated[int, Field(ge=0)] = 3


class CompressionSettings(TechniqueSettings):
    """The share of a turn's words that is kept at most: names and numbers first, then the first."""

    ratio: Share = 1.0


class EmptyContext(Technique):
    """Shows the question alone, the lower bound."""

    name = "none"


class Full(Technique):
    """Shows every turn whatever the budget; of what the model's limit does not hold, the oldest turns go."""

    name = "full"

    def open(self, dialogue: Dialogue) -> Choose:
        return lambda asked, budget: turns_of(dialogue, range(len(dialogue.turns)))


class Oracle(Technique):
    """Shows the turns that state the answer, and no other; the upper bound of every choice."""

    name = "oracle"

    def open(self, dialogue: Dialogue) -> Choose:
        return lambda asked, budget: turns_of(dialogue, budget.fill(asked.evidence), asked.evidence)


class Chance(Technique):
    """Shows turns drawn by the seed, for each question anew, in their order."""

    name = "random"

    def open(self, dialogue: Dialogue) -> Choose:
        def choose(asked: TurnQuery, budget: ContextBudget) -> Chosen:
            order = list(range(len(dialogue.turns)))
            Random(f"{self.setting.seed}/{dialogue.id}/{asked.key}/{asked.text}").shuffle(order)
            return turns_of(dialogue, budget.fill(order))

        return choose


class Recency(Technique):
    """Shows the last turns, as a chat window keeps them."""

    name = "recency"

    def open(self, dialogue: Dialogue) -> Choose:
        return lambda asked, budget: turns_of(dialogue, newest(budget, range(len(dialogue.turns))))


class Pruning(Technique):
    """Shows the last turns that have a name or a number in them and at least `least` content words."""

    name = "pruning"
    settings = PruningSettings()

    def open(self, dialogue: Dialogue) -> Choose:
        informative = [
            index for index, turn in enumerate(dialogue.turns) if len(content(turn.text)) >= self.settings.least and names(turn.text)
        ]
        return lambda asked, budget: turns_of(dialogue, budget.fill(reversed(informative)))


class Compression(Technique):
    """Shows the last turns without function words, in order; turns without any other word are left out."""

    name = "compression"
    settings = CompressionSettings()

    def open(self, dialogue: Dialogue) -> Choose:
        lines = {index: line for index, turn in enumerate(dialogue.turns) if (line := compressed(turn, self.settings.ratio))}

        def choose(asked: TurnQuery, budget: ContextBudget) -> Chosen:
            indices = budget.fill_lines(lines, sorted(lines, reverse=True))
            return Chosen(tuple(lines[index] for index in indices), indices)

        return choose


def newest(budget: ContextBudget, indices: range) -> tuple[int, ...]:
    """The longest row of turns up to the last that fits."""
    for first in indices:
        row = indices[first - indices.start :]
        if len(budget.fill(reversed(row))) == len(row):
            return tuple(row)
    return ()


def compressed(turn: Turn, ratio: float = 1.0) -> str:
    """The turn's line with its content words alone, at most `ratio` of all its words; "" where it has none."""
    words = [word for word in turn.text.split() if word.strip(".,:;!?").lower() not in FUNCTION_WORDS | OPENERS]
    kept = sorted(range(len(words)), key=lambda index: not names(words[index]))[: round(ratio * len(turn.text.split()))]
    words = [words[index] for index in sorted(kept)]
    return f"{turn.speaker}: {' '.join(words)}" if words else ""

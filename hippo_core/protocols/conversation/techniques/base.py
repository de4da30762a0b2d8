"""What every technique is: given a dialogue and a question, it chooses lines within a budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.protocols.conversation.budget import ContextBudget
from hippo_core.protocols.conversation.dialogue import Dialogue, Turn


@dataclass(frozen=True)
class TurnQuery:
    """A question as a technique sees it. `evidence`: indices of the turns that state the answer, which the oracle alone may read."""

    text: str
    key: str = ""
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """What is shown for a question.

    Args:
        lines: in the order in which they stand in the prompt.
        indices: the turns of these lines, in order; lines that are of no single turn stand before them.
        ranking: turns, best first; None where nothing is ranked by the question.
    """

    lines: tuple[str, ...]
    indices: tuple[int, ...]
    ranking: tuple[int, ...] | None = None


Choose = Callable[[TurnQuery, ContextBudget], Chosen]
Ask = Callable[[str, int], str | None]  # a prompt and a number of tokens -> what the model writes; None where it cannot read the prompt
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class TechniqueContext:
    """What techniques are made from: the model that answers, the seed of what is drawn, how many turns a passage has, and how another model
    is asked to write (None: `lm` writes)."""

    lm: Any
    seed: int = 1337
    chunk: int = 1
    ask: Ask | None = None


class TechniqueSettings(BaseModel):
    """The settings of a technique that has none; others add theirs."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RetrieverSettings(TechniqueSettings):
    """How many passages are shown at most; None: as many as fit the budget."""

    top_k: Annotated[int, Field(ge=1)] | None = None


class Technique:
    """The base of all techniques: it shows nothing."""

    chunks = False  # whether it ranks passages, which may be several turns
    settings: Any = TechniqueSettings()  # NAME[key=value;...] replaces them

    def __init__(self, setting: TechniqueContext) -> None:
        self.setting = setting

    def open(self, dialogue: Dialogue) -> Choose:
        """Read a dialogue once, before any question; the function that chooses from it."""
        return lambda asked, budget: Chosen((), ())


def turns_of(dialogue: Dialogue, indices: Sequence[int], ranking: Sequence[int] | None = None) -> Chosen:
    """These turns, word for word."""
    return Chosen(tuple(dialogue.turns[index].line for index in indices), tuple(indices), None if ranking is None else tuple(ranking))


Rank = Callable[[str], Sequence[int]]  # a question -> passages by number, best first; what does not fit at all may be left out


class Retriever(Technique):
    """The base of techniques that rank passages by the question: `chunk` turns in a row each, of which the best are shown turn by turn.
    What it leaves out of its ranking is not shown."""

    chunks = True
    settings: Any = RetrieverSettings()

    def rank(self, passages: Sequence[str], turns: Sequence[Sequence[Turn]]) -> Rank:
        """A function that ranks passages (texts of the turns beside them, which are in order)."""
        raise NotImplementedError

    def open(self, dialogue: Dialogue) -> Choose:
        size, count = self.setting.chunk, len(dialogue.turns)
        parts = [range(first, min(first + size, count)) for first in range(0, count, size)]
        turns = [[dialogue.turns[index] for index in part] for part in parts]
        rank = self.rank([" ".join(turn.text for turn in part) for part in turns], turns)
        known: dict[str, tuple[int, ...]] = {}

        def choose(asked: TurnQuery, budget: ContextBudget) -> Chosen:
            if asked.text not in known:
                known[asked.text] = tuple(index for number in rank(asked.text)[: self.settings.top_k] for index in parts[number])
            return turns_of(dialogue, budget.fill(known[asked.text]), known[asked.text])

        return choose

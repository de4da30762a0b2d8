"""How much of a dialogue a technique may show: so many turns, so many tokens, or all of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.errors import LabError
from hippo_core.models.spec import validated
from hippo_core.protocols.base.assignments import with_settings
from hippo_core.protocols.conversation.dialogue import Dialogue

TURNS, FULL = "turns", "full"
Count = Callable[[str], int]  # tokens of a line with its line break


class TurnsBudget(BaseModel):
    """A share of the turns, and at most so many."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    most: Annotated[int, Field(ge=1)] = 20


def budget_name(value: str | int) -> str:
    """The name of a budget: "turns" (half of the turns, 20 at most; also turns[ratio=0.25;most=10]), "full", or a number of tokens.
    LabError for anything else."""
    text = str(value)
    if value == FULL or (text.isdecimal() and int(text) > 0):
        return FULL if value == FULL else str(int(text))
    if text.partition("[")[0] != TURNS:
        raise LabError(f"budgets are {TURNS}, {TURNS}[ratio=0.25;most=10], {FULL} or a number of tokens from 1, got {value!r}")
    of = _of_turns(text)
    return TURNS if of == TurnsBudget() else f"{TURNS}[ratio={of.ratio:g};most={of.most}]"


def _of_turns(name: str) -> TurnsBudget:
    return validated(TurnsBudget, with_settings(name)[1], f"budget {name}")


@dataclass(frozen=True)
class ContextBudget:
    """What a budget leaves for the lines of one dialogue.

    Args:
        turns, tokens: at most; None: as many as there are.
        cost: tokens of each turn's line, by its index.
        count: tokens of any line.
    """

    turns: int | None
    tokens: int | None
    cost: Sequence[int]
    count: Count

    @classmethod
    def of(cls, budget: str, dialogue: Dialogue, cost: Sequence[int], count: Count) -> Self:
        """The budget of a dialogue whose turns take `cost` tokens. LabError where the budget is below one turn."""
        below = f"is below one turn of dialogue {dialogue.id!r}"
        if budget.startswith(TURNS):
            of = _of_turns(budget)
            turns = min(int(len(dialogue.turns) * of.ratio + 1e-9), of.most)
            if turns < 1:
                raise LabError(f"the budget {budget} {below}, which has {len(dialogue.turns)}")
            return cls(turns, None, cost, count)
        tokens = None if budget == FULL else int(budget)
        if tokens is not None and tokens < min(cost):
            raise LabError(f"a budget of {tokens} tokens {below}, whose shortest takes {min(cost)}; raise it")
        return cls(None, tokens, cost, count)

    def fill(self, ranking: Iterable[int]) -> tuple[int, ...]:
        """The turns of a ranking that fit, best first, returned in order. It skips a turn that does not fit, so that a shorter one may."""
        chosen: list[int] = []
        left = self.tokens
        for index in ranking:
            if self.turns is not None and len(chosen) == self.turns:
                break
            if left is not None:
                if self.cost[index] > left:
                    continue
                left -= self.cost[index]
            chosen.append(index)
        return tuple(sorted(chosen))

    def fill_lines(self, lines: Mapping[int, str], ranking: Iterable[int]) -> tuple[int, ...]:
        """The same for lines that replace turns."""
        cost = [self.count(lines[index]) if index in lines else 0 for index in range(len(self.cost))]
        return replace(self, cost=cost).fill(index for index in ranking if index in lines)

    def share(self, part: float) -> "ContextBudget":
        """A part of the budget; at least one turn."""
        turns = None if self.turns is None else max(1, round(part * self.turns))
        return replace(self, turns=turns, tokens=None if self.tokens is None else int(part * self.tokens))

    def less(self, indices: Sequence[int]) -> "ContextBudget":
        """The budget without these turns."""
        turns = None if self.turns is None else self.turns - len(indices)
        tokens = None if self.tokens is None else self.tokens - sum(self.cost[index] for index in indices)
        return replace(self, turns=turns, tokens=tokens)

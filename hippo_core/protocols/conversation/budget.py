"""How much of a dialogue a technique may show: so many turns, so many tokens, or all of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import Dialogue

MOST_TURNS = 20
TURNS, FULL = "turns", "full"
Count = Callable[[str], int]  # tokens of a line with its line break


def budget_name(value: str | int) -> str:
    """The name of a budget: "turns" (half of the turns, 20 at most), "full", or a number of tokens. LabError for anything else."""
    if value in (TURNS, FULL) or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return str(value)
    raise LabError(f"expected a budget: {TURNS}, {FULL} or a number of tokens from 1, got {value!r}")


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
        if budget == TURNS:
            turns = min(len(dialogue.turns) // 2, MOST_TURNS)
            if turns < 1:
                raise LabError(f"the budget of half of the turns {below}, which has {len(dialogue.turns)}")
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

"""model_rank: passages in the order in which the answering model puts them, which it is asked for in numbers (listwise: Sun et al. 2023,
EMNLP, RankGPT). It reads `window` passages at once, first the oldest; the better half of them is read again with those before, so that the
best come first. What it does not name keeps its order, newest first."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import Turn
from hippo_core.protocols.conversation.techniques.base import Rank, Retriever, RetrieverSettings
from hippo_core.protocols.conversation.techniques.model_summary import written
from hippo_core.text import on_one_line

TASK = (
    "Which of these passages help to answer the question? Write their numbers, the most helpful first, with commas between, and no other "
    "word."
)


class RankSettings(RetrieverSettings):
    """How many passages the model reads at once."""

    window: Annotated[int, Field(ge=2)] = 20


class ModelRank(Retriever):
    """Ranks passages as the model says."""

    name = "model_rank"
    writes = True
    settings = RankSettings()

    def rank(self, passages: Sequence[str], turns: Sequence[Sequence[Turn]]) -> Rank:
        window = self.settings.window

        def rank(question: str) -> Sequence[int]:
            order = list(reversed(range(len(passages))))
            for first in range(max(0, len(order) - window), -(window // 2), -(window // 2)):
                part = slice(max(0, first), max(0, first) + window)
                order[part] = self._ordered(order[part], passages, question)
            return order

        return rank

    def _ordered(self, part: Sequence[int], passages: Sequence[str], question: str) -> list[int]:
        lines = [f"[{number}] {on_one_line(passages[index])}" for number, index in enumerate(part, 1)]
        text, tokens = "\n".join([*lines, f"Question: {on_one_line(question)}", TASK]), 5 * len(part)
        reply = self.setting.ask(text, tokens) if self.setting.ask else written(self.setting.lm, text, tokens)
        if reply is None:
            raise LabError(f"{len(part)} passages are more than the model reads at once; set fewer: {self.name}[window={len(part) // 2}]")
        named = [int(number) - 1 for number in re.findall(r"\d+", reply) if 0 < int(number) <= len(part)]
        if not named:
            raise LabError(f"the model was asked for the numbers of passages and wrote {reply[:80]!r}")
        return [part[index] for index in dict.fromkeys([*named, *range(len(part))])]

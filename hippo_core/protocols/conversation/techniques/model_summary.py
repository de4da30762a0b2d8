"""model_summary: a rolling summary in the model's own words; model_window_summary: the same of what has left a window of the last turns.

After `every` turns the model reads its last summary and the new turns, and is asked for a summary of both (as MemGPT's recursive one:
Packer et al. 2023, section 2.2). It has as many tokens as the budget, but no more than a PART of what the model reads at once, since a step
holds the last summary, the new turns and the next summary; a budget in turns has as many tokens as these have on average. What was
made of the same turns in the same length is kept: a dialogue costs its summary once, whatever is asked of it, and one that grows its new
turns alone. The question does not matter.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from hippo_core.protocols.conversation.budget import ContextBudget
from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.techniques.base import Ask, Choose, Chosen, Technique, TechniqueContext, TurnQuery
from hippo_core.protocols.conversation.techniques.plain import newest
from hippo_core.protocols.conversation.techniques.summary import SummarySettings
from hippo_core.providers.base import Provider
from hippo_core.providers.retry import CallFailed
from hippo_core.text import on_one_line

PART = 4  # a summary is at most so small a part of the model's limit
TASK = (
    "Summarise this conversation in a few sentences. Keep every name, place, thing and number; where something was corrected, say the new."
)
HEAD = "Summary:"


class ModelSummary(Technique):
    """Shows what the model wrote of all turns."""

    name = "model_summary"
    writes = True
    settings = SummarySettings()

    def __init__(self, setting: TechniqueContext) -> None:
        super().__init__(setting)
        self._written: dict[tuple[tuple[str, ...], int], str] = {}  # turns from the first, tokens -> their summary

    def open(self, dialogue: Dialogue) -> Choose:
        lines = tuple(turn.line for turn in dialogue.turns)

        def choose(asked: TurnQuery, budget: ContextBudget) -> Chosen:
            last = newest(budget.share(self.settings.window), range(len(lines))) if self.settings.window else ()
            end = len(lines) - len(last)
            summary = self._fitting(lines[:end], budget.less(last))
            return Chosen((*([f"{HEAD} {summary}"] if summary else []), *lines[end:]), last)

        return choose

    def _fitting(self, lines: tuple[str, ...], budget: ContextBudget) -> str:
        """The summary of these turns, cut at a word to the budget; "" where nothing fits."""
        tokens = budget.tokens if budget.tokens is not None else round((budget.turns or len(budget.cost)) * fmean(budget.cost))
        tokens = tokens if self.setting.ask else min(tokens, self.setting.lm.spec.context_limit // PART)
        own = tokens - budget.count(HEAD)
        words = self.rolling(lines, own).split() if lines and own > 0 and budget.turns != 0 else []
        while words and budget.count(" ".join([HEAD, *words])) > tokens:
            words.pop()
        return " ".join(words)

    def rolling(self, lines: tuple[str, ...], tokens: int) -> str:
        """The summary of these turns in so many tokens at most, renewed every so many turns."""
        summary, every = "", self.settings.every
        for first in range(0, len(lines), every):
            end = min(first + every, len(lines))
            key = lines[:end], tokens
            if key not in self._written:
                self._written[key] = self._renewed(summary, lines[first:end], tokens)
            summary = self._written[key]
        return summary

    def _renewed(self, summary: str, lines: Sequence[str], tokens: int) -> str:
        """The next summary; of turns that the model cannot read at once that of the first half, then of the others. A turn that no prompt
        holds is passed over."""
        read, ask = [f"{HEAD} {summary}", *lines] if summary else lines, self.setting.ask
        written = ask("\n".join([*map(on_one_line, read), TASK]), tokens) if ask else write(self.setting.lm, read, tokens)
        if written is not None:
            return written or summary
        half = len(lines) // 2
        return self._renewed(self._renewed(summary, lines[:half], tokens), lines[half:], tokens) if half else summary


def write(lm: Any, lines: Sequence[str], tokens: int) -> str | None:
    """What the model writes when it is asked for a summary of these lines, greedily; None where its limit does not hold them."""
    return written(lm, "\n".join([*map(on_one_line, lines), TASK]), tokens)


def written(lm: Any, text: str, tokens: int) -> str | None:
    """What the model writes when it is asked this, greedily; None where its limit does not hold it."""
    from hippo_core.models.generate import generate
    from hippo_core.models.prompt import stops
    from hippo_core.models.template import chat

    prompt = chat(lm.tokenizer, lm.template.text, [{"role": "user", "content": text}])
    if len(lm.encode(prompt)) + tokens > lm.spec.context_limit:
        return None
    [answer] = generate(lm, [prompt], tokens, 1, stops(lm, "short"))
    return " ".join(answer.text.split())


def asking(provider: Provider) -> Ask:
    """How a provider's model is asked to write; one of the lab's without the instruction to answer in few words. Raises CallFailed."""

    def ask(text: str, tokens: int) -> str | None:
        if lm := getattr(provider, "lm", None):
            return written(lm, text, tokens)
        answer = provider.answer(text, max_tokens=tokens)
        if answer.error:
            raise CallFailed(answer.error)
        return answer.text

    return ask

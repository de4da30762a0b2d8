"""Who answers: a deterministic reader that quotes, or a language model. Both get a `Prompt` and return an `Answer`."""

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hippo_core.live.answer import content_words
from hippo_core.paired.brought import Passage

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

UNKNOWN = "unknown"
LEAST_SHARED = (
    0.2  # of a question's content words, that a quoted passage holds: chosen on validation worlds (benchmarks/paired/threshold.py)
)
TOKENS, BRIEFING_TOKENS = 24, 96  # of an answer and of a briefing at most
CITED = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True)
class Prompt:
    """What an answerer gets. `passages` in order of telling; `best`: the one that a memory ranks first, None where nothing is ranked;
    `confidence`: of the memory that it holds the answer; `briefing`: whether all that was brought is wanted, not one answer."""

    question: str
    passages: tuple[Passage, ...] = ()
    best: Passage | None = None
    confidence: float | None = None
    briefing: bool = False

    @property
    def text(self) -> str:
        """The prompt in plain words, for a model behind an interface."""
        lines = [f"[{number}] {passage.text}" for number, passage in enumerate(self.passages, start=1)]
        wanted = "Sum up what matters." if self.briefing else 'Answer in a few words. If the notes do not say, answer "unknown".'
        return "\n".join([*(["Notes:", *lines, ""] if lines else []), f"Question: {self.question}", wanted])


@dataclass(frozen=True)
class Answer:
    """An answer and what it took. Cached tokens are part of `tokens_in`. `cited`: ids of notes that it cites; None where it cannot cite."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    error: str = ""
    tokens_cached: int = 0
    cited: tuple[str, ...] | None = None


class Answerer(Protocol):
    """Anything that answers."""

    def answer(self, prompt: Prompt) -> Answer:
        """The answer; what went wrong stands in its `error`."""
        ...


class Reader:
    """Quotes the passage that the memory ranks first; where nothing is ranked, the one that shares most content words with the question, of
    equals the later. It answers "unknown" where that passage holds fewer than `least` of the question's content words. Tokens are words."""

    def __init__(self, least: float = LEAST_SHARED) -> None:
        self.least = least

    def answer(self, prompt: Prompt) -> Answer:
        """No model, no chance: the same prompt has the same answer everywhere."""
        begin = time.perf_counter()
        read = sum(len(passage.text.split()) for passage in prompt.passages) + len(prompt.question.split())
        if prompt.briefing:
            text, cited = (
                "\n".join(passage.text for passage in prompt.passages) or UNKNOWN,
                tuple(p.note for p in prompt.passages if p.note),
            )
        else:
            quoted = self._quoted(prompt)
            text, cited = (quoted.text, (quoted.note,) if quoted.note else ()) if quoted else (UNKNOWN, ())
        return Answer(text, read, len(text.split()), time.perf_counter() - begin, cited=cited)

    def _quoted(self, prompt: Prompt) -> Passage | None:
        asked = {_stem(word) for word in content_words([prompt.question])}
        shared = {passage: len(asked & {_stem(word) for word in content_words([passage.text])}) for passage in prompt.passages}
        if not shared:
            return None
        best = prompt.best or max(reversed(prompt.passages), key=lambda passage: shared[passage])
        return best if shared.get(best, 0) >= self.least * len(asked) else None


def _stem(word: str) -> str:
    """A word without what English adds to it most often."""
    return re.sub(r"(?:'s|ies|es|s|ed|ing)$", "", word) if len(word) > 4 else word.removesuffix("'s")


@dataclass
class LocalModel:
    """A model of this lab, greedily, with the passages as lines in its prompt; those that do not fit are left out, the oldest first."""

    lm: "LanguageModel"

    def answer(self, prompt: Prompt) -> Answer:
        """Tokens are the model's own."""
        from hippo_core.delivery.text import TextDelivery
        from hippo_core.delivery.types import Question

        begin = time.perf_counter()
        asked = Question.of_texts(prompt.question, [passage.text for passage in prompt.passages])
        [delivered] = TextDelivery(self.lm).ask([asked], BRIEFING_TOKENS if prompt.briefing else TOKENS)
        return Answer(delivered.text.strip(), delivered.prompt_tokens, delivered.generated_tokens, time.perf_counter() - begin)


def cited_in(text: str, passages: tuple[Passage, ...]) -> tuple[str, ...] | None:
    """The notes that an answer cites by the numbers of `Prompt.text`; None where it cites nothing."""
    numbers = [int(number) for number in CITED.findall(text)]
    return tuple(passages[number - 1].note for number in numbers if 1 <= number <= len(passages)) if numbers else None

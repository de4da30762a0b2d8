"""Who answers a run: a deterministic reader that quotes, a model of this lab, or a model behind a provider (hippo_core/providers). Each
gets a `Prompt` and returns an `ItemAnswer`."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from hippo_core.live.answer import Read, content_words
from hippo_core.protocols.paired.conditions import Passage
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.providers import Provider, load_provider
from hippo_core.text import on_one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hippo_core.models.language_model import LanguageModel

Similarity = Callable[[str, Sequence[str]], list[float]]  # how similar a question and each text are
UNKNOWN = "unknown"
LEAST_SHARED, LEAST_COSINE = 0.6, 0.35  # for a passage to be quoted: chosen on validation worlds (benchmarks/paired/threshold.py)
TOKENS, BRIEFING_TOKENS = 24, 96  # of an answer and of a briefing at most
CITED = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True)
class Prompt:
    """What an answerer gets. `passages` in the order of the notes; `best`: the one that a memory ranks first, None where nothing is ranked;
    `confidence`: of the memory that it holds the answer; `briefing`: whether all that was retrieved is wanted, not one answer."""

    question: str
    passages: tuple[Passage, ...] = ()
    best: Passage | None = None
    confidence: float | None = None
    briefing: bool = False

    @property
    def text(self) -> str:
        """The prompt in plain words, for a model behind an interface."""
        lines = [f"[{number}] {on_one_line(passage.text)}" for number, passage in enumerate(self.passages, start=1)]
        return "\n".join([*(["Notes:", *lines, ""] if lines else []), self.text_without_notes])

    @property
    def text_without_notes(self) -> str:
        """The question, and what is wanted."""
        wanted = "Sum up what matters." if self.briefing else 'Answer in a few words. If the notes do not say, answer "unknown".'
        return f"Question: {self.question}\n{wanted}"

    @property
    def read(self) -> tuple[Read, ...]:
        """Who wrote what of it: the passages, and the question."""
        return (*(Read(on_one_line(passage.text), "teller") for passage in self.passages), Read(self.question, "asker"))

    def with_last(self, count: int) -> "Prompt":
        """The same with the last passages alone."""
        return replace(self, passages=self.passages[len(self.passages) - count :])


@dataclass(frozen=True)
class ItemAnswer:
    """An answer and what it took. Cached tokens are part of `tokens_in`; tokens are None where nobody stated them. `cited`: ids of notes
    that it cites; None where it cannot cite. `read`: what a model read for it; nothing where none answered."""

    text: str
    tokens_in: int | None = 0
    tokens_out: int | None = 0
    seconds: float = 0.0
    error: str = ""
    tokens_cached: int | None = 0
    cited: tuple[str, ...] | None = None
    read: tuple[Read, ...] = ()


class Reader:
    """Quotes the passage that the memory ranks first; where nothing is ranked, the one that is most like the question, of equals the later.
    It answers "unknown" where that passage is less like the question than `least`. Tokens are words. No model writes: the same prompt has
    the same answer everywhere."""

    def __init__(self, similarity: Similarity, least: float) -> None:
        self._similarity, self.least = similarity, least

    def answer(self, prompt: Prompt) -> ItemAnswer:
        """A quotation, all that was retrieved where a briefing is wanted, or "unknown"."""
        begin = time.perf_counter()
        read = sum(len(passage.text.split()) for passage in prompt.passages) + len(prompt.question.split())
        quoted = list(prompt.passages) if prompt.briefing else self._quoted(prompt)
        text = "\n".join(passage.text for passage in quoted) or UNKNOWN
        cited = tuple(passage.note for passage in quoted if passage.note)
        return ItemAnswer(text, read, len(text.split()), time.perf_counter() - begin, cited=cited)

    def _quoted(self, prompt: Prompt) -> list[Passage]:
        """The one passage that answers; none where none is like the question."""
        passages = [prompt.best] if prompt.best else list(reversed(prompt.passages))
        if not passages:
            return []
        scores = self._similarity(prompt.question, [passage.text for passage in passages])
        best = max(range(len(passages)), key=lambda index: scores[index])
        return [passages[best]] if scores[best] >= self.least else []


def by_words(question: str, texts: Sequence[str]) -> list[float]:
    """The share of the question's content words that each text holds."""
    asked = {_stem(word) for word in content_words([question])}
    shared = [len(asked & {_stem(word) for word in content_words([text])}) for text in texts]
    return [count / len(asked) if asked else 1.0 for count in shared]


def by_vectors(question: str, texts: Sequence[str]) -> list[float]:
    """The cosine of MiniLM's vectors of the question and each text, to six decimals."""
    import numpy as np

    asked, *vectors = (_vector(text) for text in (question, *texts))
    return [round(float(np.dot(asked, vector)), 6) for vector in vectors]


@lru_cache(maxsize=20_000)
def _vector(text: str) -> "NDArray[np.float64]":
    from hippo_core.models import minilm

    vector = minilm.encode([text]).double().numpy()[0]
    return vector / (vector @ vector) ** 0.5


def _stem(word: str) -> str:
    """A word without what English adds to it most often."""
    return re.sub(r"(?:'s|ies|es|s|ed|ing)$", "", word) if len(word) > 4 else word.removesuffix("'s")


@dataclass(frozen=True)
class LocalModel:
    """A model of this lab, greedily, with the passages as lines in its prompt; those that do not fit are left out, the oldest first."""

    lm: "LanguageModel"

    def answer(self, prompt: Prompt) -> ItemAnswer:
        """Tokens are the model's own."""
        from hippo_core.delivery.text import TextDelivery
        from hippo_core.delivery.types import Question

        begin = time.perf_counter()
        asked = Question.of_texts(prompt.question, [passage.text for passage in prompt.passages])
        [delivered] = TextDelivery(self.lm).ask([asked], BRIEFING_TOKENS if prompt.briefing else TOKENS)
        read = prompt.with_last(len(prompt.passages) - delivered.dropped).read
        took = time.perf_counter() - begin
        return ItemAnswer(delivered.text.strip(), delivered.prompt_tokens, delivered.generated_tokens, took, read=read)


@dataclass(frozen=True)
class FromProvider:
    """A model somewhere, at temperature 0. It gets `Prompt.text`; of the passages those that its limit holds, the latest first."""

    provider: Provider

    def answer(self, prompt: Prompt) -> ItemAnswer:
        """Tokens are those that the provider states, None where it does not; a failure stands in the answer's `error`."""
        most = BRIEFING_TOKENS if prompt.briefing else TOKENS
        fitting = self.provider.fitting([passage.text for passage in prompt.passages], prompt.text_without_notes, most)
        kept = prompt.with_last(len(fitting))
        completion = self.provider.answer(kept.text, max_tokens=most)
        numbers = [int(number) for number in CITED.findall(completion.text)]
        cited = tuple(kept.passages[number - 1].note for number in numbers if 1 <= number <= len(kept.passages)) if numbers else None
        costs = completion.tokens_in, completion.tokens_out, completion.seconds
        return ItemAnswer(completion.text.strip(), *costs, completion.error or "", completion.cached_tokens, cited, kept.read)


Answerer = Reader | LocalModel | FromProvider


def answerer_of(settings: RunSettings, lm: "str | LanguageModel") -> Answerer:
    """The answerer that a run's settings name. LabError where its provider is unknown or not there."""
    if not settings.by_model:
        return Reader(by_vectors, LEAST_COSINE) if settings.encoder == "minilm" else Reader(by_words, LEAST_SHARED)
    if settings.provider:
        return FromProvider(load_provider(settings.provider, key_env=settings.key_env))
    if isinstance(lm, str):
        from hippo_core.models.load import load
        from hippo_core.models.spec import load_spec

        lm = load(load_spec(lm), threads=1)
    return LocalModel(lm)

"""What a live memory says: what became of a sentence, what was recalled for a question and why, and the answer."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hippo_core.methods.base import Read, Retrieved
from hippo_core.methods.self_ask import ComposedBy
from hippo_core.retrieval.lexicon import words
from hippo_core.store.trace import Action, Trace

LISTED = 10  # of a ranking
COMPLETIONS = ("hopfield", "predictive")  # terms of a score that completion adds
FUNCTION_WORDS = frozenset(  # of questions and sentences: all else is content
    re.findall(
        r"\w+",
        "a about all am an and any are as at be been but by can could did do does for from had has have he her him his how i if in into "
        "is it its me my no not of off on or our out over she so than that the their them then there they this to up us was we were what "
        "when where which who whom whose why will with would you your",
    )
)


@dataclass(frozen=True, slots=True)
class TeachResult:
    """What became of a sentence."""

    id: int  # its number, by which it can be forgotten
    text: str
    action: Action  # insert, aggregate (known in the same words), route (recalled by itself until there is more evidence), refuse
    salience: float  # S of the gate; 0 without a gate
    terms: Mapping[str, float]  # of the salience


@dataclass(frozen=True, slots=True)
class Slept:
    """A sleep: what was rehearsed, recalled from a noisy cue, and merged with a trace of the same words."""

    rehearsed: int
    cycles: int
    recalled: int
    merged: int
    ms: float


@dataclass(frozen=True, slots=True)
class RecalledTrace:
    """A recalled trace; `who`, `when` and `provenance` are as it was taught."""

    id: int  # the number of the sentence
    text: str
    score: float | None  # by which it is ranked; None where the method gives none
    terms: Mapping[str, float]  # of the score, by channel and rule
    shown: bool  # whether it reaches the model, in its own words or behind those of a program
    rank_before: int | None  # before completion judged it; None where nothing was judged
    shared: tuple[str, ...]  # content words that it has in common with the question
    who: str = ""
    when: str = ""
    provenance: str = ""
    pinned: bool = False
    memory: str = ""


@dataclass(frozen=True)
class RecallResult:
    """What was recalled for a question, best first, and why."""

    question: str
    traces: tuple[RecalledTrace, ...]
    size: int  # how many traces there were
    confidence: float | None  # that what is shown holds the answer, 0 to 1; None where the method does not say
    ms: Mapping[str, float]  # of the stages `recall`, `completion`, and `encode` (traces met for the first time)
    off: bool = False  # the memory was off
    replaced: tuple[RecalledTrace, ...] = ()  # what tells the matter of the best traces and holds no longer

    @property
    def why(self) -> str:
        """Why the best trace is the best, and what it replaced."""
        if self.off:
            return "The memory is off: nothing was recalled."
        if not self.size:
            return "Nothing is stored."
        if not self.traces:
            return f"None of {self.size} traces has anything in common with the question."
        best, *others = self.traces
        replaced = "".join(f' It replaced #{trace.id} "{trace.text}".' for trace in self.replaced)
        if best.score is None:
            return f"The method gives no scores; it brings {sum(trace.shown for trace in self.traces)} of {self.size} traces.{replaced}"
        made = " ".join(f"{'+' if value >= 0 else '-'} {name} {abs(value):.2f}" for name, value in best.terms.items()).removeprefix("+ ")
        next_best = f", the next {others[0].score:.2f} (#{others[0].id})" if others and others[0].score is not None else ""
        shares = (
            f" It shares {', '.join(best.shared)} with the question." if best.shared else " It shares no content word with the question."
        )
        return f"#{best.id} is first of {self.size} with {best.score:.2f}{f' = {made}' if made else ''}{next_best}.{shares}{replaced}"


@dataclass(frozen=True)
class Answer:
    """An answer and where it comes from."""

    text: str  # what the model says, greedily; "unknown" where it does not know
    question: str
    traces: tuple[RecalledTrace, ...]  # those that reached the model, or on which a program's words rest
    recall: RecallResult
    prompt: str  # what was run as the question's own
    tokens: Mapping[str, float]  # of the prompt, of traces in it, generated, computed
    ms: Mapping[str, float]  # of all stages, `answer` for the model, `total`
    consolidated: bool = False  # whether what sleep has put into the model had a say
    read: tuple[Read, ...] = ()  # the lines that the model read, and the question, each with who wrote it
    inner_read: tuple[Read, ...] = ()  # the same of each question that was asked first, with what the model said
    composed_by: ComposedBy = "model"  # the model, which read facts; a program, whose words it copied; a program alone
    cut: bool = False  # whether the limit of new tokens stopped it

    @property
    def origin(self) -> str:
        """Where the answer comes from: "recall", "consolidation", "recall and consolidation", or "model" alone."""
        parts = [name for name, has in (("recall", self.traces), ("consolidation", self.consolidated)) if has]
        return " and ".join(parts) or "model"

    @property
    def why(self) -> str:
        """Why the best trace is the best, the text that the model really read, with the parts that a program wrote, and who answered."""
        sentences = [self.recall.why]
        if self.recall.traces and not self.traces:
            sentences.append("None of them reached the model.")
        if self.inner_read:
            sentences.append(f"First the model read, and said: {', '.join(map(_quoted, self.inner_read))}.")
        if len(self.read) > 1 or any(part.by == "program" for part in self.read):
            sentences.append(f"The model read: {', '.join(map(_quoted, self.read))}.")
        if self.composed_by != "model":
            sentences.append(f"The answer was composed by: {self.composed_by}.")
        if self.cut:
            sentences.append(f"The answer was cut after {self.tokens['generated']:.0f} tokens; ask(question, tokens=...) leaves more room.")
        return " ".join(sentences)

    def __str__(self) -> str:
        return self.text


MARKED = {"program": " (written by a program)", "model": " (said by the model)"}


def _quoted(part: Read) -> str:
    return f'"{part.text}"{MARKED.get(part.by, "")}'


def recalled(question: str, retrieved: Retrieved, size: int, listed: int = LISTED) -> RecallResult:
    """What a method retrieved, in the words of this module; the `listed` best traces and those that are shown."""
    ranking, before, asked = list(retrieved.ranking or ()), _before_completion(retrieved), content_words([question])

    def made(trace: Trace, position: int | None = None) -> RecalledTrace:
        scored = position if position is not None and position < len(retrieved.scores) else None
        return RecalledTrace(
            id=number_of(trace),
            text=trace.text,
            score=None if scored is None else retrieved.scores[scored],
            terms={} if scored is None else {name: float(values[scored]) for name, values in retrieved.terms.items()},
            shown=trace in retrieved.shown,
            rank_before=before.get(position),
            shared=tuple(dict.fromkeys(word for word in words(trace.text) if word in asked)),
            who=trace.teller,
            when=trace.context_key,
            provenance=trace.provenance,
            pinned=trace.pinned,
            memory=trace.memory,
        )

    missing = [trace for trace in retrieved.shown if trace not in ranking[:listed]]
    positions = [*range(min(listed, len(ranking))), *(ranking.index(trace) for trace in missing if trace in ranking)]
    traces = [made(ranking[position], position) for position in dict.fromkeys(positions)]
    traces += [made(trace) for trace in missing if trace not in ranking]
    ms = {"recall": retrieved.recall_ms, "completion": retrieved.completion_ms, "encode": retrieved.encode_ms}
    ms = {name: value for name, value in ms.items() if value == value}
    return RecallResult(question, tuple(traces), size, retrieved.confidence, ms, replaced=tuple(map(made, retrieved.replaced)))


def number_of(trace: Trace) -> int:
    """The number of a trace's sentence, by which it can be forgotten."""
    return int(trace.source) if trace.source.isdecimal() else trace.id


def _before_completion(retrieved: Retrieved) -> dict[int | None, int]:
    """The rank, from 1, that each place of the ranking had before completion; nothing where nothing was completed."""
    judged = [values for name, values in retrieved.terms.items() if name in COMPLETIONS]
    if not judged:
        return {}
    added = map(sum, zip(*judged, strict=True))
    scores = [score - more for score, more in zip(retrieved.scores, added, strict=True)]
    order = sorted(range(len(scores)), key=lambda position: -round(scores[position], 6))
    return {position: rank for rank, position in enumerate(order, start=1)}


def content_words(texts: Iterable[str]) -> set[str]:
    """The words of texts that are no function words."""
    return {word for text in texts for word in words(text)} - FUNCTION_WORDS

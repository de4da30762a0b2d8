"""What a live memory says: what became of a sentence, what was recalled for a question and why, and the answer."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hippo_core.methods.base import Read, Retrieved
from hippo_core.methods.read import ComposedBy
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
    """What became of a sentence.

    Args:
        id: its number, by which it can be forgotten.
        action: insert, aggregate (it was known in the same words, which are more certain now), route (it is recalled by
            itself, and joined with others when there is more evidence) or refuse (the gate let it go).
        salience: S of the gate, which `terms` add up to; 0 without a gate.
        terms: what each term of the gate contributes.
    """

    id: int
    text: str
    action: Action
    salience: float
    terms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Slept:
    """A sleep: how many traces were rehearsed in how many cycles, how many of them were recalled from a noisy cue, and how many were merged
    with one of the same words."""

    rehearsed: int
    cycles: int
    recalled: int
    merged: int
    ms: float


@dataclass(frozen=True, slots=True)
class RecalledTrace:
    """A recalled trace.

    Args:
        id: the number of the sentence.
        score: by which it is ranked; None where the method gives none.
        terms: what the score is made of: each channel and rule, by name; empty where the method does not say.
        shown: whether it reaches the model, in its own words or as that on which a program's words rest.
        rank_before: its rank before completion judged it; None where nothing was judged.
        shared: the content words that it has in common with the question.
        who, when, provenance: as it was taught.
    """

    id: int
    text: str
    score: float | None
    terms: Mapping[str, float]
    shown: bool
    rank_before: int | None
    shared: tuple[str, ...]
    who: str = ""
    when: str = ""
    provenance: str = ""
    pinned: bool = False
    memory: str = ""


@dataclass(frozen=True)
class RecallResult:
    """What was recalled for a question: the best traces, best first, and why they stand so.

    Args:
        size: how many traces there were.
        confidence: how sure the method is that what it shows holds the answer, from 0 to 1; None where it does not say.
        ms: milliseconds of the stages `recall` and `completion`, and of `encode`, in which traces met for the first time were run.
        off: whether the memory was off, so that nothing was looked for.
        replaced: what tells the matter of the best traces and holds no longer.
    """

    question: str
    traces: tuple[RecalledTrace, ...]
    size: int
    confidence: float | None
    ms: Mapping[str, float]
    off: bool = False
    replaced: tuple[RecalledTrace, ...] = ()

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
        replaced = "".join(f' It replaced #{one.id} "{one.text}".' for one in self.replaced)
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
    """An answer and where it comes from.

    Args:
        text: what the model says, greedily; "unknown" where it does not know.
        traces: those that reached the model, or on which the words rest that a program wrote for it (`read` says which).
        recall: the whole ranking, and why it stands so.
        prompt: what was run as the question's own; keys and values of traces lie beside it.
        tokens: of the prompt as the answer sees it, of traces in it, and how many were computed.
        ms: milliseconds of all stages, `answer` for the model, `total`.
        consolidated: whether what sleep has put into the model had a say in it.
        read: the lines that the model read, in order, and the question as it was put to the model; each with who wrote it.
        inner_read: the same of each question that was asked first, since it stood in this one, with what the model said to it.
        composed_by: who composed it: the model, which read facts; a program, whose words the model copied; a program alone.
        cut: whether the limit of new tokens stopped it, so that its end is missing.
    """

    text: str
    question: str
    traces: tuple[RecalledTrace, ...]
    recall: RecallResult
    prompt: str
    tokens: Mapping[str, float]
    ms: Mapping[str, float]
    consolidated: bool = False
    read: tuple[Read, ...] = ()
    inner_read: tuple[Read, ...] = ()
    composed_by: ComposedBy = "model"
    cut: bool = False

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
    ranking = list(retrieved.ranking or ())
    missing = [trace for trace in retrieved.shown if trace not in ranking[:listed]]
    places = [*range(min(listed, len(ranking))), *(ranking.index(trace) for trace in missing if trace in ranking)]
    before = _before_completion(retrieved)
    asked = content_words([question])
    traces = [_recalled(ranking[place], place, retrieved, before, asked) for place in dict.fromkeys(places)]
    traces += [_recalled(trace, None, retrieved, {}, asked) for trace in missing if trace not in ranking]
    ms = {"recall": retrieved.recall_ms, "completion": retrieved.completion_ms, "encode": retrieved.encode_ms}
    ms = {name: value for name, value in ms.items() if value == value}
    replaced = tuple(_recalled(trace, None, retrieved, {}, asked) for trace in retrieved.replaced)
    return RecallResult(question, tuple(traces), size, retrieved.confidence, ms, replaced=replaced)


def number_of(trace: Trace) -> int:
    """The number of a trace's sentence, by which it can be forgotten."""
    return int(trace.source) if trace.source.isdecimal() else trace.id


def _recalled(trace: Trace, place: int | None, retrieved: Retrieved, before: Mapping[int, int], asked: set[str]) -> RecalledTrace:
    scored = place is not None and place < len(retrieved.scores)
    return RecalledTrace(
        number_of(trace),
        trace.text,
        retrieved.scores[place] if scored and place is not None else None,
        {name: float(values[place]) for name, values in retrieved.terms.items()} if scored and place is not None else {},
        trace in retrieved.shown,
        before.get(place) if place is not None else None,
        tuple(dict.fromkeys(word for word in words(trace.text) if word in asked)),
        trace.teller,
        trace.context_key,
        trace.provenance,
        trace.pinned,
        trace.memory,
    )


def _before_completion(retrieved: Retrieved) -> dict[int, int]:
    """The rank, from 1, that each place of the ranking had before completion; nothing where nothing was completed."""
    judged = [values for name, values in retrieved.terms.items() if name in COMPLETIONS]
    if not judged:
        return {}
    added = map(sum, zip(*judged, strict=True))
    scores = [score - more for score, more in zip(retrieved.scores, added, strict=True)]
    order = sorted(range(len(scores)), key=lambda place: -round(scores[place], 6))
    return {place: rank for rank, place in enumerate(order, start=1)}


def content_words(texts: Iterable[str]) -> set[str]:
    """The words of texts that are no function words."""
    return {word for text in texts for word in words(text)} - FUNCTION_WORDS

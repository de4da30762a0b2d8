"""Questions that a text of other people's words answers, made from it alone: by rules, without a model.

    text        The Wars of Religion were fought from 1562 to 1598. They ended with the Edict of Nantes.
    rehearsed   What belongs in the gap? They ended with ...        the Edict of Nantes
                Were fought from 1562 to 1598: who or what?         The Wars of Religion
                What does the text say after: The Wars ... 1598.    They ended with the Edict of Nantes.

Left out are names, numbers, phrases between function words, and how a sentence ends. Every sentence is also the answer of what stands
before it and of what it names (Eyuboglu et al. 2025, arXiv 2506.06266, section 4).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from random import Random

GAP = "..."
SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9\"'(])")
NAME = re.compile(r"\b(?:[A-Z][\w'-]+(?: [A-Z][\w'-]+)*|\d[\d.,]*\d|\d)\b")  # names and numbers
WORD = re.compile(r"[^\s,;:()\"]+")
ARTICLES = frozenset(("a", "an", "the"))
TURNS = frozenset((  # after which an ending begins
    "about", "after", "as", "at", "between", "by", "for", "from", "in", "into", "is", "of", "on", "than", "to", "was", "were", "with",
))  # fmt: skip
FUNCTION = ARTICLES | TURNS | frozenset((  # words that no phrase holds
    "and", "are", "be", "been", "being", "but", "can", "could", "did", "do", "does", "had", "has", "have", "he", "her", "his", "if",
    "it", "its", "may", "might", "more", "most", "no", "not", "or", "our", "she", "so", "such", "that", "their", "them", "then",
    "there", "these", "they", "this", "those", "under", "until", "we", "what", "when", "where", "which", "while", "who", "whom",
    "whose", "why", "will", "within", "without", "would", "you", "your",
))  # fmt: skip
LONGEST, SENTENCE_WORDS = 6, 40  # words of an answer
CUE_WORDS = (4, 12)  # words of a short cue on either side
NUMBER = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """A part of a sentence: where it begins and ends."""

    sentence: str
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.sentence[self.start : self.end]


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [sentence for sentence in SENTENCE.split(text.strip()) if sentence]


@lru_cache(maxsize=256)
def spans(text: str) -> tuple[tuple[AnswerSpan, ...], ...]:
    """What a text's sentences can be asked for, by kind: names and numbers, phrases, endings. All empty where it names nothing."""
    if not NAME.search(text):
        return ((), (), ())
    names, phrases, endings = [], [], []
    for sentence in sentences(text):
        names += [AnswerSpan(sentence, *match.span()) for match in NAME.finditer(sentence) if match.group().lower() not in FUNCTION]
        phrases += _phrases(sentence)
        endings += _endings(sentence)
    return tuple(names), tuple(phrases), tuple(endings)


def ask_text(random: Random, text: str) -> tuple[str, str] | None:
    """A question about a text and its answer, None where it names nothing: a third restate a sentence, the rest leaves a span out."""
    kinds = [kind for kind in spans(text) if kind]
    if not kinds:
        return None
    parts, form = sentences(text), random.random()
    if form < 1 / 6 and len(parts) > 1:
        index = random.randrange(len(parts) - 1)
        return f"What does the text say after: {parts[index]}", _short(parts[index + 1])
    span = random.choice(random.choice(kinds))
    if form < 1 / 3 and span.text.lower() not in FUNCTION and len(parts) > 1:
        return f"What does the text about {span.text} say?", _short(span.sentence)
    before, after = _cue(random, span)
    if random.random() < 0.5:
        return f"What belongs in the gap? {before}{GAP}{after}", span.text
    return _asked(before, after, span), span.text


def _short(sentence: str) -> str:
    return " ".join(sentence.split()[:SENTENCE_WORDS])


def _cue(random: Random, span: AnswerSpan) -> tuple[str, str]:
    """What stands around a span: all of its sentence, or a few words on either side."""
    before, after = span.sentence[: span.start], span.sentence[span.end :]
    if random.random() < 0.5:
        return before, after
    left, right = (random.randint(*CUE_WORDS) for _ in range(2))
    pieces = re.findall(r"\S+\s*", before)[-left:], re.findall(r"\s*\S+", after)[:right]
    return "".join(pieces[0]), "".join(pieces[1])


def _asked(before: str, after: str, span: AnswerSpan) -> str:
    """The cue with a question word in the place of the span."""
    word = "how many, or when" if NUMBER.search(span.text) else "who or what" if span.text[:1].isupper() else "what"
    rest = after.rstrip(" .?!,;:")
    if not before.strip():
        return f"{word[:1].upper()}{word[1:]}{rest}?"
    return f"{before[:1].upper()}{before[1:]}{word}{rest}?"


def _phrases(sentence: str) -> list[AnswerSpan]:
    """Runs of words between function words and marks, with the article before them."""
    phrases: list[AnswerSpan] = []
    run: list[re.Match[str]] = []
    article: re.Match[str] | None = None
    last: re.Match[str] | None = None
    for word in [*WORD.finditer(sentence), None]:
        bare = word.group().rstrip(".?!").lower() if word else ""
        broken = word is None or bare in FUNCTION or (last is not None and sentence[last.end() : word.start()].strip())
        if broken and run:
            if len(run) <= LONGEST:
                phrases.append(_span(sentence, (article or run[0]).start(), run[-1].end()))
            run, article = [], None
        if word is not None and bare not in FUNCTION:
            run.append(word)
        elif word is not None:
            article = word if bare in ARTICLES else None
        last = word
    return [span for span in phrases if span.text]


def _endings(sentence: str) -> list[AnswerSpan]:
    """How a sentence ends, after each word behind which an ending begins."""
    words = list(WORD.finditer(sentence))
    starts = [index + 1 for index, word in enumerate(words[:-1]) if word.group().lower() in TURNS]
    return [_span(sentence, words[start].start(), len(sentence)) for start in starts if len(words) - start <= LONGEST]


def _span(sentence: str, start: int, end: int) -> AnswerSpan:
    return AnswerSpan(sentence, start, start + len(sentence[start:end].rstrip(" .?!,;:")))

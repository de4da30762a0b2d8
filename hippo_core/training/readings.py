"""Readings: lessons of passages that people wrote, asked what people asked about them; the articles of SQuAD's training split alone.

    facts      one to five passages of Wikipedia, each of up to some 300 tokens
    branches   questions about them; some about a passage that is not there -> unknown

Rajpurkar et al. 2016 (arXiv 1606.05250). The text is read from the user's folder and checked (`text_files`); nothing of it is kept.
"""

from functools import cache
from itertools import accumulate
from random import Random
from typing import NamedTuple

from hippo_core.results.scores import normalise
from hippo_core.suites.natural import squad
from hippo_core.suites.natural.passages import SENTENCE
from hippo_core.suites.types import Split
from hippo_core.text_files import read_text
from hippo_core.training.lessons import UNKNOWN, Branch, Lesson

MOST_BYTES = 1100  # of a passage: 300 tokens in nine of ten that are cut there
MOST_ANSWER = 50  # characters: 16 tokens in all but three of a thousand
COUNTS = {1: 0.40, 2: 0.25, 3: 0.15, 4: 0.10, 5: 0.10}  # passages of a lesson: how often
QUESTIONS = 6  # of a lesson, besides those without an answer
SAME_ARTICLE = 0.5  # of lessons and of questions without an answer: how often they come from one article, whose passages are alike
UNANSWERED = 0.35  # of lessons


class Passage(NamedTuple):
    """A passage with its article's title, its questions and their answers."""

    title: str
    text: str
    questions: tuple[tuple[str, str], ...]


def readings(random: Random, n_facts: int, split: Split) -> Lesson:
    """Passages, questions about them, and in about a third of lessons one or two about others; `n_facts` is not heeded."""
    pool = passages(split)
    count = random.choices(list(COUNTS), list(COUNTS.values()))[0]
    shown = random.sample(pool, count)
    if random.random() < SAME_ARTICLE:
        alike = [passage for passage in pool if passage.title == shown[0].title]
        shown = random.sample(alike, min(count, len(alike)))
    cut = [excerpt(random, passage) for passage in shown]
    asked = [(number, *question) for number, passage in enumerate(cut) for question in passage.questions]
    branches = [
        Branch(question, answer, (number,), True, "answered")
        for number, question, answer in random.sample(asked, min(QUESTIONS, len(asked)))
    ]
    if random.random() < UNANSWERED:
        branches += unanswered(random, shown, random.choice((1, 1, 2)), split)
    return Lesson(tuple((passage.text, ()) for passage in cut), tuple(branches))


def unanswered(random: Random, shown: list[Passage], count: int, split: Split) -> list[Branch]:
    """Questions about passages that are not shown, whose answers stand in none that is."""
    others = [passage for passage in passages(split) if passage not in shown]
    near = [passage for passage in others if passage.title == shown[0].title]
    told = f" {normalise(' '.join(passage.text for passage in shown))} "
    branches: list[Branch] = []
    while len(branches) < count:
        passage = random.choice(near if near and random.random() < SAME_ARTICLE else others)
        question, answer = random.choice(passage.questions)
        if f" {normalise(answer)} " not in told:
            branches.append(Branch(question, UNKNOWN, (), False, UNKNOWN))
    return branches


@cache
def passages(split: Split) -> tuple[Passage, ...]:
    """All passages of a split's articles that have a question with a short answer, on one line each."""
    found = []
    for article in squad.of_split(squad.parse(read_text(squad.FILE)), split):
        for text, questions in article.passages:
            line = " ".join(text.split())
            short = tuple((question, answer) for question, answer in questions if len(answer) <= MOST_ANSWER and answer in line)
            if short:
                found.append(Passage(article.title, line, short))
    return tuple(found)


def excerpt(random: Random, passage: Passage) -> Passage:
    """The passage, or of a long one sentences in a row around a question's answer, with all questions that they surely answer: those
    whose answer stands nowhere else in the passage. One sentence that is too long by itself stays whole."""
    text = passage.text
    if len(text.encode()) <= MOST_BYTES:
        return passage
    sentences = SENTENCE.split(text)
    starts = [0, *accumulate(len(sentence) + 1 for sentence in sentences)]
    spans = {question: (text.index(answer), text.rindex(answer) + len(answer)) for question, answer in passage.questions}
    near = [(first, last) for first, last in spans.values() if last - first <= MOST_BYTES // 2]
    first, last = random.choice(near or [min(spans.values(), key=lambda span: span[1] - span[0])])
    low = max(number for number in range(len(sentences)) if starts[number] <= first)
    high = max(number for number in range(len(sentences)) if starts[number] < last)
    while wider := [
        (a, b)
        for a, b in ((low - 1, high), (low, high + 1))
        if a >= 0 and b < len(sentences) and len(text[starts[a] : starts[b + 1]].encode()) <= MOST_BYTES
    ]:
        low, high = random.choice(wider)
    begin, end = starts[low], starts[high + 1] - 1
    kept = tuple((question, answer) for question, answer in passage.questions if begin <= spans[question][0] and spans[question][1] <= end)
    return Passage(passage.title, text[begin:end], kept)

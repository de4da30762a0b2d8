"""HotpotQA: 300 questions that take two passages, with ten paragraphs of Wikipedia each, 2,972 when pooled (Yang et al. 2018).

    taught   all paragraphs of all questions
    asked    What government position was held by the woman who portrayed Corliss Archer in the film Kiss and Tell?

The file does not say which paragraphs support an answer: gold are those of a question's own ten that hold it. A question with the answer
yes or no has no gold, and is judged by its answer alone. Test only: nothing is fitted on it.
"""

import json
import re
from typing import Any

from hippo_core.suites.natural.passages import RUNG, PassageSettings, by_passage, facts_of, holding, single_world
from hippo_core.suites.types import ALL_TEST, Fact, Item, Suite
from hippo_core.text_files import read_text

FILE = "hotpotqa"
SHORTENED = re.compile(r"(?:\b[A-Z]|\b(?:Dr|Mr|Mrs|Ms|No|St|vs?)|\.\.)$")  # of what ends so a full stop may be a part


def title_of(paragraph: str) -> str:
    """The title that a paragraph opens with. A full stop ends it, but not where it shortens a word ("C. Hugh Holman", "Mr. Olympia") and
    the text does not begin with the title's first word."""
    title, _, text = paragraph.partition(". ")
    while SHORTENED.search(title) and text and not text.startswith(title.split()[0]):
        more, _, text = text.partition(". ")
        title = f"{title}. {more}"
    return title


def paragraphs_of(question: dict[str, Any]) -> list[str]:
    """A question's own paragraphs."""
    return [part.strip() for part in question["document"].split("\n\n") if part.strip()]


def read(settings: PassageSettings) -> tuple[list[Fact], list[Item]]:
    """The paragraphs and the questions."""
    questions = json.loads(read_text(FILE))
    numbers: dict[str, int] = {}
    own: list[list[int]] = []
    for question in questions:
        own.append([numbers.setdefault(paragraph, len(numbers)) for paragraph in paragraphs_of(question)])
    titled = [(f"hotpotqa.p{number}", title_of(text), text) for text, number in numbers.items()]
    facts = facts_of("hotpotqa", titled, settings.chunk_words)
    parts = by_passage(facts)
    taught = tuple(fact.id for fact in facts)
    items = []
    for number, (question, mine) in enumerate(zip(questions, own, strict=True)):
        near = [fact for passage in mine for fact in parts[f"hotpotqa.p{passage}"]]
        answers = tuple(question["answers"])
        kind = "yes or no" if answers[0].lower() in ("yes", "no") else "span"
        gold = holding(answers[0], near) if kind == "span" else ()
        text, slices = question["question"].strip(), () if gold else ("no_gold",)
        items.append(Item(f"hotpotqa.q{number}", "hotpotqa", text, answers, gold, kind, rung=RUNG, hops=2, taught=taught, slices=slices))
    return facts, items


HOTPOTQA = Suite(
    "hotpotqa",
    "questions of HotpotQA that take two paragraphs of Wikipedia",
    PassageSettings,
    answer_budget=16,
    has_window=False,
    stream=single_world("hotpotqa", read),
    files=lambda settings: (FILE,),
    split_rule=ALL_TEST,
)

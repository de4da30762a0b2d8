"""2WikiMultiHopQA: 6,119 passages of Wikipedia and 101 questions that take two to four of them (Ho et al. 2020; the corpus of HippoRAG).

    taught   all passages, each behind its title
    asked    Where was the place of death of Abdul-Aziz Bin Muhammad's father?

The files name the gold passages and no answers: retrieval is judged, an answer has no score. Test only: nothing is fitted on it.
"""

import json
import math

from hippo_core.errors import LabError
from hippo_core.suites.natural.passages import RUNG, PassageSettings, facts_of, single_world
from hippo_core.suites.types import ALL_TEST, Fact, Item, Suite
from hippo_core.text_files import read_text

PASSAGES, QUESTIONS = "twowiki-passages", "twowiki-questions"


def read(settings: PassageSettings) -> tuple[list[Fact], list[Item]]:
    """The passages and the questions. LabError where a gold title has no passage."""
    passages = json.loads(read_text(PASSAGES))
    rows = [(f"twowiki.p{number}", passage["title"], f"{passage['title']}. {passage['text']}") for number, passage in enumerate(passages)]
    facts = facts_of("twowiki", rows, settings.chunk_words)
    by_title: dict[str, list[str]] = {}
    for fact in facts:
        by_title.setdefault(fact.context_key, []).append(fact.id)
    taught = tuple(fact.id for fact in facts)
    items = []
    for number, question in enumerate(json.loads(read_text(QUESTIONS))):
        if missing := [title for title in question["ground_truth"] if title not in by_title]:
            raise LabError(f"twowiki: question {number} needs the passage {missing[0]!r}, which {PASSAGES} does not have")
        gold = tuple(by_title[title][0] for title in dict.fromkeys(question["ground_truth"]))
        text = question["question"].strip()
        items.append(Item(f"twowiki.q{number}", "twowiki", text, ("",), gold, "hops", rung=RUNG, hops=len(gold), taught=taught))
    return facts, items


TWOWIKI = Suite(
    "twowiki",
    "questions of 2WikiMultiHopQA that take two to four passages; retrieval alone",
    PassageSettings,
    has_window=False,
    measures={"answered": lambda world, item, prediction: math.nan},
    stream=single_world("twowiki", read),
    files=lambda settings: (PASSAGES, QUESTIONS),
    split_rule=ALL_TEST,
)

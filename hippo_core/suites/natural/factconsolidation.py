"""FactConsolidation, 6k: 455 numbered facts of which later ones replace earlier ones, and 100 questions about one and 100 about several of
them (MemoryAgentBench; Hu, Wang and McAuley 2025, arXiv 2507.05257; facts and questions by Zhong et al. 2023, MQuAKE, arXiv 2305.14795).

    taught   all facts in the order of their numbers, without these
    asked    Which sport is goaltender associated with?        What is the birthplace of the spouse of the author of Our Mutual Friend?

The facts are changed on purpose, so no model knows the answers by itself. The files name no gold facts. For a question about one fact it is
the one with most of the question's words, among those that hold the answer. Test only: nothing is fitted on it.
"""

import json
import re

from hippo_core.errors import LabError
from hippo_core.suites.natural.passages import RUNG, holding, single_world
from hippo_core.suites.types import ALL_TEST, Fact, Item, ReadSettings, Suite
from hippo_core.text_files import read_text

POOL = "factconsolidation-facts"
QUESTIONS = {"single_hop": "factconsolidation-single", "multi_hop": "factconsolidation-multi"}  # by kind
NUMBERED = re.compile(r"(?m)^\s*(\d+)\.\s+(\S.*?)\s*$")
WORD = re.compile(r"\w+")
NAME = "factconsolidation"


def read(settings: ReadSettings) -> tuple[list[Fact], list[Item]]:
    """The facts and the questions."""
    numbered = NUMBERED.findall(read_text(POOL))
    if [int(number) for number, _ in numbered] != list(range(len(numbered))):
        raise LabError(f"{NAME}: expected facts that are numbered from 0 on without a gap in {POOL}")
    facts = [Fact(f"{NAME}.f{number}", NAME, text, {}, number, provenance="read") for number, (_, text) in enumerate(numbered)]
    taught = tuple(fact.id for fact in facts)
    items = []
    for kind, file in QUESTIONS.items():
        for number, line in enumerate(filter(None, read_text(file).splitlines())):
            question = json.loads(line)
            text, answers = question["question"].strip(), tuple(question["answers"])
            gold = _gold(text, answers[0], facts) if kind == "single_hop" else ()
            slices = () if gold else ("no_gold",)
            items.append(Item(f"{NAME}.{kind}{number}", NAME, text, answers, gold, kind, rung=RUNG, taught=taught, slices=slices))
    return facts, items


def _gold(question: str, answer: str, facts: list[Fact]) -> tuple[str, ...]:
    of = {fact.id: fact for fact in facts}
    words = set(WORD.findall(question.lower()))

    def fits(name: str) -> tuple[int, int]:
        return len(words & set(WORD.findall(of[name].text.lower()))), of[name].time

    return tuple(sorted(holding(answer, facts), key=fits)[-1:])


FACTCONSOLIDATION = Suite(
    "factconsolidation",
    "facts that later ones replace, and questions about one and about several of them",
    ReadSettings,
    answer_budget=16,
    has_window=False,
    stream=single_world(NAME, read),
    files=lambda settings: (POOL, *QUESTIONS.values()),
    split_rule=ALL_TEST,
)

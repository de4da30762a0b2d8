"""Cues: questions with the few traces that a memory might recall for them, drawn from the lessons' train worlds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from hippo_core.suites.types import Split
from hippo_core.training import tasks
from hippo_core.training.lessons import UNKNOWN, Branch

SHARES: Mapping[tasks.Drill, float] = {
    tasks.slots: 0.45,
    tasks.journeys: 0.15,
    tasks.other_words: 0.15,
    tasks.corrected_once: 0.08,
    tasks.chains: 0.12,
    tasks.plainly_unsaid: 0.05,
}
N_FACTS = 10  # of a lesson, from which distractors are drawn


@dataclass(frozen=True)
class TrainingQuery:
    """A question, its answer, and the texts of the traces recalled for it: the gold ones and distractors, or distractors alone where
    nothing says the answer."""

    question: str
    answer: str
    traces: tuple[str, ...]
    skill: str


def draw_cues(random: Random, most: int, split: Split = "train") -> list[TrainingQuery]:
    """The cues of one lesson, each with up to `most` traces (more where the answer needs more)."""
    drill = random.choices(list(SHARES), list(SHARES.values()))[0]
    while True:
        lesson = drill(random, N_FACTS, split)
        branches = [branch for branch in lesson.branches if branch.question and (branch.gold or branch.answer == UNKNOWN)]
        if branches:
            facts = [text for text, _ in lesson.facts]
            return [_cue(random, branch, facts, random.randint(1, most)) for branch in branches]


def _cue(random: Random, branch: Branch, facts: Sequence[str], n_traces: int) -> TrainingQuery:
    others = [index for index in range(len(facts)) if index not in branch.gold]
    extra = random.sample(others, min(len(others), max(0, n_traces - len(branch.gold))))
    return TrainingQuery(branch.question, branch.answer, tuple(facts[index] for index in sorted({*branch.gold, *extra})), branch.skill)

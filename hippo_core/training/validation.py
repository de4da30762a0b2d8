"""A look at validation lessons while a model learns: the share of right answers by drill, as one text and as blocks.

Cheap (one pass over packed lessons) and only for the training's log: what a model can do is measured by `skills`.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

from hippo_core.training import chains, mixture, readings, tasks
from hippo_core.training.lessons import Lesson, trim
from hippo_core.training.packed_examples import Encoder
from hippo_core.training.train import Log, right_answers

LESSONS, N_FACTS, AT_ONCE = 3, 8, 10
TIMES = 2  # so many times as many lessons of what only a later edition practises
BY_SKILL = (readings.readings, chains.joined_facts, chains.joined_facts_alone)  # drills of which each skill is a row


def examine(model: Any, encoder: Encoder, drills: Iterable[tasks.Drill] = tuple(mixture.SHARES)) -> Log:
    """Accuracy with some eight facts: `<drill>` as text, `<drill>/blocks` as blocks where order does not matter."""
    marks: dict[str, list[bool]] = defaultdict(list)
    for name, by_skill, lessons in _paper(drills):
        for batch in encoder.batches(lessons, [], -(-len(lessons) // AT_ONCE)):
            for skill, right in right_answers(model, batch):
                marks[f"{name}, {skill}" if by_skill else name].append(right)
    return {name: sum(drill_marks) / len(drill_marks) for name, drill_marks in marks.items()}


def _paper(drills: Iterable[tasks.Drill]) -> list[tuple[str, bool, list[Lesson]]]:
    paper: list[tuple[str, bool, list[Lesson]]] = []
    for drill in drills:
        name, by_skill = drill.__name__, drill in BY_SKILL
        random = Random(f"exam/{name}")
        lessons = [drill(random, N_FACTS, "val") for _ in range(LESSONS if drill in mixture.SHARES else TIMES * LESSONS)]
        lessons = [trim(random, lesson, N_FACTS) if drill is tasks.chains else lesson for lesson in lessons]
        paper.append((name, by_skill, lessons))
        if not lessons[0].ordered:
            paper.append((f"{name}/blocks", by_skill, [replace(lesson, blocks=True) for lesson in lessons]))
    return paper

"""A look at validation lessons while a model learns: the share of right answers by drill, as one text and as blocks.

Cheap (one pass over packed lessons) and only for the training's log: what a model can do is measured by `skills`.
"""

from collections import defaultdict
from dataclasses import replace
from random import Random
from typing import Any

from hippo_core.training import mixture, tasks
from hippo_core.training.lessons import Lesson, trim
from hippo_core.training.packed_examples import LessonEncoder
from hippo_core.training.train import Log, right_answers

LESSONS, N_FACTS, AT_ONCE = 3, 8, 10


def examine(model: Any, encoder: LessonEncoder) -> Log:
    """Accuracy with some eight facts: `<drill>` as text, `<drill>/blocks` as blocks where order does not matter."""
    marks: dict[str, list[bool]] = defaultdict(list)
    for name, lessons in _paper():
        for batch in encoder.batches(lessons, [], -(-len(lessons) // AT_ONCE)):
            marks[name] += [right for _, right in right_answers(model, batch)]
    return {name: sum(drill_marks) / len(drill_marks) for name, drill_marks in marks.items()}


def _paper() -> list[tuple[str, list[Lesson]]]:
    paper: list[tuple[str, list[Lesson]]] = []
    for drill in mixture.EXAMINED:
        name = drill.__name__
        random = Random(f"exam/{name}")
        lessons = [drill(random, N_FACTS, "val") for _ in range(LESSONS)]
        lessons = [trim(random, lesson, N_FACTS) if drill is tasks.chains else lesson for lesson in lessons]
        paper.append((name, lessons))
        if not lessons[0].ordered:
            paper.append((f"{name}/blocks", [replace(lesson, blocks=True) for lesson in lessons]))
    return paper

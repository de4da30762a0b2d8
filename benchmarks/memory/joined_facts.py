"""Joined facts: what a model answers with the right facts alone in front, in relations and frames that no lesson has.

    python benchmarks/memory/joined_facts.py smollm2-135m-reader

Questions of one, two and three hops of the validation lessons of `hippo_core.training.chains`, greedy, as one text; right means that each
token of the answer is the likeliest. With "unknown" as the model says it, and never allowed.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from greedy import right

from hippo_core.models.abstention import unknown_tokens
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.statistics import cluster_interval
from hippo_core.training import chains
from hippo_core.training.lessons import UNKNOWN, Lesson, keep
from hippo_core.training.packed_examples import Encoder

QUESTIONS, FACTS = 300, 8


def asked(count: int) -> Iterator[tuple[int, Lesson]]:
    """Lessons of one question and the facts that it needs, each with the number of the lesson that it was drawn in."""
    random, number, lesson = Random("joined facts"), 0, Lesson((), ())
    while count:
        number, lesson = number + 1, chains.joined_facts(random, FACTS, "val")
        for branch in [branch for branch in lesson.branches if branch.answer != UNKNOWN][:count]:
            yield number, keep(replace(lesson, branches=(branch,)), branch.gold)
            count -= 1


def main(model: str) -> None:
    """Print the share of right answers by hops."""
    lm = load(load_spec(model), threads=1)
    encoder, unknown = Encoder(lm.tokenizer, lm.template), list(unknown_tokens(lm).first)
    marks: dict[tuple[str, bool], list[tuple[int, bool]]] = defaultdict(list)
    for number, lesson in asked(QUESTIONS):
        [branch] = lesson.branches
        for allowed, found in zip((True, False), right(lm, encoder, lesson, unknown), strict=True):
            marks[branch.skill, allowed].append((number, found))
    for (skill, allowed), found in sorted(marks.items(), key=lambda pair: (pair[0][0], not pair[0][1])):
        lessons, answers = zip(*found, strict=True)
        interval = cluster_interval([float(one) for one in answers], lessons)
        says = "as it says" if allowed else "never unknown"
        print(f"{model}  {skill:7}  {says:13}  {interval.mean:.2f} ({interval.low:.2f} to {interval.high:.2f})  {len(found)} questions")


if __name__ == "__main__":
    main(*sys.argv[1:])

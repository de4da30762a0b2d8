"""Lessons: what a model is taught to read with. One lesson is a window of facts and many questions about it, answered in parallel.

facts      On Friday, Carla sold a guitar at the market.   Zendaya bought a hat in May.
branches   Who sold a guitar? -> Carla     Did Zendaya buy a lamp? -> no     When did Carla buy a hat? -> unknown
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from hippo_core.suites.types import World

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Branch:
    """What follows the facts: a question and its answer, or a restatement."""

    question: str  # empty for a restatement
    answer: str
    gold: tuple[int, ...]  # indices of the facts it needs
    guided: bool = True  # the answer's words stand in the last gold fact
    skill: str = ""  # what the question practises


@dataclass(frozen=True, slots=True)
class Lesson:
    """Facts and branches."""

    facts: tuple[tuple[str, tuple[str, ...]], ...]  # text and the words of their slots
    branches: tuple[Branch, ...]
    ordered: bool = False  # the order of telling matters, so the facts are read as one text
    blocks: bool = False  # each fact sees the prompt's beginning and itself only
    plain: bool = False  # without the chat template


def world_lesson(random: Random, world: World, *, ordered: bool) -> Lesson:
    """Any suite's world: the facts that one of its items was taught, and all questions that were asked at that moment."""
    taught = random.choice(world.items).taught
    chosen = [fact for fact in world.facts if fact.id in set(taught)]
    number = {fact.id: index for index, fact in enumerate(chosen)}
    facts = tuple((fact.text, tuple(fact.slots.values())) for fact in chosen)
    branches = (
        Branch(
            item.question,
            item.answers[0],
            tuple(number[gold] for gold in item.gold_facts),
            item.answers[0] in facts[number[item.gold_facts[-1]]][0],
            item.kind,
        )
        for item in world.items
        if item.taught == taught
    )
    return Lesson(facts, tuple(branches), ordered)


def keep(lesson: Lesson, indices: Iterable[int]) -> Lesson:
    """The same with these facts only, and the questions that they still answer."""
    order = sorted(indices)
    branches = (
        replace(branch, gold=tuple(order.index(index) for index in branch.gold))
        for branch in lesson.branches
        if set(branch.gold) <= set(order)
    )
    return replace(lesson, facts=tuple(lesson.facts[index] for index in order), branches=tuple(branches))


def trim(random: Random, lesson: Lesson, n_facts: int) -> Lesson:
    """The same with at most `n_facts` facts (more where a question needs them), and the questions that these still answer."""
    chosen: set[int] = set()
    for branch in random.sample(lesson.branches, len(lesson.branches)):
        if not chosen or len(chosen | set(branch.gold)) <= n_facts:
            chosen |= set(branch.gold)
    others = [index for index in range(len(lesson.facts)) if index not in chosen]
    return keep(lesson, chosen | set(random.sample(others, max(0, min(len(others), n_facts - len(chosen))))))


def gold_only(random: Random, lesson: Lesson) -> Lesson:
    """The same with one question and only the facts that it needs, as under the control `oracle`."""
    branch = random.choice([branch for branch in lesson.branches if branch.question] or list(lesson.branches))
    return keep(replace(lesson, branches=(branch,)), branch.gold)


def forget(lesson: Lesson, removed: set[int]) -> Lesson:
    """The same without these facts, whose loss leaves no other answer; a question that needs one of them has the answer "unknown"."""
    remaining = [index for index in range(len(lesson.facts)) if index not in removed]
    branches = []
    for branch in lesson.branches:
        if not set(branch.gold) & removed:
            branches.append(replace(branch, gold=tuple(remaining.index(index) for index in branch.gold)))
        elif branch.question:
            branches.append(Branch(branch.question, UNKNOWN, (), False, UNKNOWN))
    return replace(lesson, facts=tuple(lesson.facts[index] for index in remaining), branches=tuple(branches))

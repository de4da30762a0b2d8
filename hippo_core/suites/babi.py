"""The public bAbI stories, tasks 1 to 3: where someone or something is, by one, two or three supporting statements.

    taught   Mary got the milk. John moved to the bedroom.
    asked    Where is John?     gold: bedroom

A world is a story, an item's window all statements before the question. Questions repeat within a story as it goes on, with other
answers, and most test sentences occur in the train files: the suite is exempt from the rules against both, and its card says so.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Literal

from pydantic import Field

from hippo_core.files import LabError, root
from hippo_core.suites.given import GivenSuite
from hippo_core.suites.types import Fact, Item, Place, Settings, Split, World

FILES = {1: "qa1_single-supporting-fact", 2: "qa2_two-supporting-facts", 3: "qa3_three-supporting-facts"}
VALIDATION = 80  # stories at the end of each train file that are kept for validation
ROOMS = 6  # bathroom, bedroom, garden, hallway, kitchen, office
STATEMENT = re.compile(r"(\w+) .*?(to )?the (\w+)(?: there)?\.$")
QUESTION = re.compile(r"Where (?:is|was) (?:the )?(\w+)(?: before the (\w+))? ?\?")


class BabiSettings(Settings):
    """Which tasks, and how many questions of a story are asked."""

    n_facts: Literal[0] = 0  # the stories are as they are
    n_competitors: Literal[0] = 0
    n_items: int = Field(1, ge=1, le=5)  # questions a story, at least; more where n needs them
    tasks: tuple[Literal[1, 2, 3], ...] = Field((1, 2, 3), min_length=1)


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a story: its text, its answer, how many statements stand before it, and which of these support the answer."""

    text: str
    answer: str
    before: int
    support: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """The statements of a story in order, and its questions."""

    id: str
    task: int
    statements: tuple[str, ...]
    questions: tuple[Question, ...]


@cache
def read_stories(task: int, part: str) -> tuple[Story, ...]:
    """All stories of a file; part is "train" or "test". Lines are numbered within a story, a 1 begins the next."""
    path = root() / f"data/samples/babi/{FILES[task]}_{part}.txt"
    if not path.exists():
        raise LabError(f"missing {path}; it is part of the repository: restore it with `git checkout -- {path}`")
    blocks: list[list[list[str]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        number, text = line.split(" ", 1)
        if number == "1":
            blocks.append([])
        blocks[-1].append([number, *text.split("\t")])
    return tuple(read_story(f"qa{task}-{part}-{number:03d}", task, block) for number, block in enumerate(blocks))


def read_story(name: str, task: int, lines: list[list[str]]) -> Story:
    """A story from its lines: [number, statement] or [number, question, answer, numbers of the supporting lines]."""
    statements: list[str] = []
    position: dict[str, int] = {}
    questions = []
    for number, text, *rest in lines:
        if rest:
            support = tuple(sorted(position[line] for line in rest[1].split()))
            questions.append(Question(text.strip(), rest[0], len(statements), support))
        else:
            position[number] = len(statements)
            statements.append(text.strip())
    return Story(name, task, tuple(statements), tuple(questions))


@cache
def stories(tasks: tuple[int, ...], split: Split) -> tuple[Story, ...]:
    """The stories of a split: the test files; the end of the train files for validation; the rest of these for training."""
    part = "test" if split == "test" else "train"
    cut = {"test": slice(None), "val": slice(-VALIDATION, None), "train": slice(-VALIDATION)}[split]
    return tuple(story for task in sorted(set(tasks)) for story in read_stories(task, part)[cut])


def make_world(random: Random, settings: BabiSettings, place: Place) -> World:
    """The story with this number in the seed's order, from the first again after the last; `random` chooses its questions."""
    available = stories(settings.tasks, place.split)
    order = Random(f"babi/order/{place.seed}/{place.split}")
    story = order.sample(available, len(available))[place.index % len(available)]
    return tell_story(random, story, settings.n_items)


def given(settings: BabiSettings, split: Split, seed: int, n: int | None) -> Iterator[World]:
    """Each story once. Where n is more than the stories there are, each is asked as many questions as it takes."""
    available = stories(settings.tasks, split)
    most = sum(len(story.questions) for story in available)
    if n is not None and n > most:
        raise LabError(f"babi has {most} {split} questions in tasks {', '.join(map(str, settings.tasks))}; {n} were asked for: lower n")
    enough = settings.model_copy(update={"n_items": max(settings.n_items, -(-(n or 0) // len(available)))})
    for index in range(len(available)):
        yield make_world(Random(f"babi/questions/{seed}/{split}/{index}"), enough, Place(split, seed, index))


def tell_story(random: Random, story: Story, n_items: int) -> World:
    """The story with some of its questions, in their order. It ends with the last statement before the last of these."""
    chosen = sorted(random.sample(range(len(story.questions)), len(story.questions))[:n_items])
    asked = [story.questions[number] for number in chosen]
    needed = {fact for question in asked for fact in question.support}
    facts = tuple(
        Fact(f"{story.id}.f{number}", story.id, text, statement_slots(text), number, provenance="told", asked=number in needed)
        for number, text in enumerate(story.statements[: asked[-1].before])
    )
    return World(story.id, facts, tuple(make_item(story, facts, question, number) for number, question in zip(chosen, asked, strict=True)))


def make_item(story: Story, facts: tuple[Fact, ...], question: Question, number: int) -> Item:
    before = tuple(fact.id for fact in facts[: question.before])
    cue = question_cue(question.text)
    return Item(
        id=f"{story.id}.q{number}",
        world=story.id,
        question=question.text,
        answers=(question.answer,),
        gold_facts=tuple(facts[line].id for line in question.support),
        kind=f"qa{story.task}",
        hops=story.task,
        distance=question.before - 1 - question.support[-1],
        chance=1 / (ROOMS - ("where" in cue)),
        cue=cue,
        window=before,
        taught=before,
    )


def statement_slots(text: str) -> dict[str, str]:
    """Who, and where to or what: "John grabbed the apple there." -> {who: John, what: apple}."""
    match = STATEMENT.match(text)
    if match is None:
        raise strange("statement", text)
    return {"who": match[1], "where" if match[2] else "what": match[3]}


def question_cue(text: str) -> dict[str, str]:
    """The words that a question names: a person or a thing, and for task 3 the later room."""
    match = QUESTION.match(text)
    if match is None:
        raise strange("question", text)
    named = {"who" if match[1][0].isupper() else "what": match[1]}
    return named | ({"where": match[2]} if match[2] else {})


def strange(what: str, text: str) -> LabError:
    """The error for a line that none of the public files has."""
    return LabError(f"data/samples/babi: this is no bAbI {what}: {text!r}; restore the files with `git checkout -- data/samples/babi`")


BABI = GivenSuite("babi", "the public bAbI stories, tasks 1 to 3", BabiSettings, make_world, given=given)

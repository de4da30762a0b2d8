"""The public bAbI stories, tasks 1 to 3, read from the user's folder: where someone or something is.

    taught   Mary got the milk. John moved to the bedroom.
    asked    Where is John?     gold: bedroom

A world is a story, an item's window all statements before the question. Questions repeat within a story as it goes on, with other
answers, and most test sentences occur in the train files.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from random import Random

from hippo_core.errors import LabError
from hippo_core.suites.babi.story import BabiQuestion, story_world
from hippo_core.suites.types import Split, World, WorldSpec
from hippo_core.text_files import read_text

TASKS = (1, 2, 3)
VALIDATION = 80  # stories at the end of each train file that are kept for validation
ROOMS = 6  # bathroom, bedroom, garden, hallway, kitchen, office
STATEMENT = re.compile(r"(\w+) .*?(to )?the (\w+)(?: there)?\.$")
QUESTION = re.compile(r"Where (?:is|was) (?:the )?(\w+)(?: before the (\w+))? ?\?")


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """The statements of a story in order, and its questions."""

    id: str
    task: int
    statements: tuple[str, ...]
    questions: tuple[BabiQuestion, ...]


def files(tasks: Iterable[int]) -> list[str]:
    """The names of the files (params/data.yaml) that hold tasks."""
    return [f"babi-{task}-{part}" for task in sorted(set(tasks)) for part in ("train", "test")]


@cache
def parse_stories(task: int, part: str, text: str) -> tuple[Story, ...]:
    """The stories of a file's text. Lines are numbered within a story, a 1 begins the next."""
    blocks: list[list[list[str]]] = []
    for line in text.splitlines():
        number, rest = line.split(" ", 1)
        if number == "1":
            blocks.append([])
        blocks[-1].append([number, *rest.split("\t")])
    return tuple(read_story(f"qa{task}-{part}-{number:03d}", task, block) for number, block in enumerate(blocks))


def read_story(name: str, task: int, lines: list[list[str]]) -> Story:
    """A story from its lines: [number, statement] or [number, question, answer, numbers of the supporting lines]."""
    statements: list[str] = []
    position: dict[str, int] = {}
    questions = []
    for number, text, *rest in lines:
        if rest:
            support = tuple(sorted(position[line] for line in rest[1].split()))
            cue = question_cue(text.strip())
            questions.append(BabiQuestion(text.strip(), rest[0], len(statements), support, ROOMS - ("where" in cue), cue))
        else:
            position[number] = len(statements)
            statements.append(text.strip())
    return Story(name, task, tuple(statements), tuple(questions))


def stories(tasks: tuple[int, ...], split: Split) -> tuple[Story, ...]:
    """The stories of a split: the test files; the end of the train files for validation; the rest of these for training."""
    part = "test" if split == "test" else "train"
    cut = {"test": slice(None), "val": slice(-VALIDATION, None), "train": slice(-VALIDATION)}[split]
    return tuple(story for task in sorted(set(tasks)) for story in parse_stories(task, part, read_text(f"babi-{task}-{part}"))[cut])


def make_world(random: Random, tasks: tuple[int, ...], n_items: int, spec: WorldSpec) -> World:
    """The story with this number in the seed's order, from the first again after the last; `random` chooses its questions."""
    shuffled = in_order_of(spec.seed, spec.split, stories(tasks, spec.split))
    return world_of_story(random, shuffled[spec.index % len(shuffled)], n_items)


@lru_cache(maxsize=4)
def in_order_of(seed: int, split: Split, available: tuple[Story, ...]) -> tuple[Story, ...]:
    """Stories in the order of a seed."""
    return tuple(Random(f"babi/order/{seed}/{split}").sample(available, len(available)))


def stream(tasks: tuple[int, ...], n_items: int, split: Split, seed: int, n: int | None) -> Iterator[World]:
    """Each story once. Where n is more than the stories there are, each is asked as many questions as it takes."""
    available = stories(tasks, split)
    most = sum(len(story.questions) for story in available)
    if n is not None and n > most:
        raise LabError(f"babi has {most} {split} questions in tasks {', '.join(map(str, tasks))}; {n} were asked for: lower n")
    enough = max(n_items, -(-(n or 0) // len(available)))
    for index, story in enumerate(in_order_of(seed, split, available)):
        yield world_of_story(Random(f"babi/questions/{seed}/{split}/{index}"), story, enough)


def world_of_story(random: Random, story: Story, n_items: int) -> World:
    """The story with so many of its questions; it ends with the last statement before the last of these."""
    chosen = sorted(random.sample(range(len(story.questions)), len(story.questions))[:n_items])
    statements = [(text, statement_slots(text)) for text in story.statements]
    return story_world(story.id, story.task, statements, {number: story.questions[number] for number in chosen})


def statement_slots(text: str) -> dict[str, str]:
    """Who, and where to or what: "John grabbed the apple there." -> {who: John, what: apple}."""
    match = matched(STATEMENT, "statement", text)
    return {"who": match[1], "where" if match[2] else "what": match[3]}


def question_cue(text: str) -> dict[str, str]:
    """The words that a question names: a person or an object, for task 3 also the later room."""
    match = matched(QUESTION, "question", text)
    named = {"who" if match[1][0].isupper() else "what": match[1]}
    return named | ({"where": match[2]} if match[2] else {})


def matched(pattern: re.Pattern[str], what: str, text: str) -> re.Match[str]:
    """The parts of a line; LabError for one that none of the public files has."""
    if match := pattern.match(text):
        return match
    raise LabError(f"this is no bAbI {what}: {text!r}; the files are those of data/README.md")

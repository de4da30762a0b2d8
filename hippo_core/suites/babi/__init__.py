"""babi: stories of the twenty kinds of the bAbI tasks (Weston et al. 2015, arXiv 1502.05698), drawn by the lab in its own words.

    taught   Omar took the lamp. Nadia walked to the cafe. Omar hurried to the market.
    asked    Where is the lamp?     gold: market (two statements: Omar took it, Omar hurried to the market)

A world is a story, an item's window all statements before the question. Each task keeps the state of its story, and answers are read
from that state. The gold facts are enough for the answer, and each of them is needed. No statement is in two splits.
With `public` the stories are the public ones of tasks 1 to 3, from the user's folder (`babi.public`).
"""

from collections.abc import Iterator
from functools import partial
from itertools import count
from random import Random
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hippo_core.suites.babi import carrying, public, reasoning
from hippo_core.suites.babi.story import DrawFailed, StoryBuilder, Task, story_world
from hippo_core.suites.splits import attempts
from hippo_core.suites.types import Settings, Split, Suite, World, WorldSpec

TASKS: dict[int, Task] = {
    1: carrying.one_supporting_fact,
    2: carrying.two_supporting_facts,
    3: carrying.three_supporting_facts,
    4: reasoning.two_argument_relations,
    5: carrying.three_argument_relations,
    6: carrying.yes_no,
    7: partial(carrying.ask_for_load, question="How many things is {who} carrying?"),
    8: partial(carrying.ask_for_load, question="What is {who} carrying?"),
    9: carrying.negation,
    10: carrying.indefinite_knowledge,
    11: partial(carrying.follow, named=carrying.MOVES, unnamed=carrying.ALONE, group_size=1),
    12: carrying.conjunction,
    13: partial(carrying.follow, named=carrying.JOINT_MOVES, unnamed=carrying.BOTH, group_size=2),
    14: carrying.time,
    15: reasoning.basic_deduction,
    16: reasoning.basic_induction,
    17: reasoning.positional_reasoning,
    18: reasoning.size_reasoning,
    19: reasoning.path_finding,
    20: carrying.motivations,
}


class BabiSettings(Settings):
    """Which tasks, in turn, and how many questions of a story are asked."""

    n_facts: Literal[0] = 0  # as many as the task states
    n_competitors: Literal[0] = 0
    n_items: int = Field(1, ge=1, le=5)  # questions a story; of the public ones at least, more where n needs them
    tasks: tuple[Annotated[int, Field(ge=1, le=20)], ...] = Field((1, 2, 3), min_length=1)
    new_names: Annotated[float, Field(ge=0, le=1)] = 0.25  # of drawn stories, in names that no training sees
    public: bool = False  # the public stories instead of drawn ones

    @model_validator(mode="after")
    def has_public_files(self) -> Self:
        """The public files that the lab reads hold three tasks."""
        if self.public and not set(self.tasks) <= set(public.TASKS):
            raise ValueError("the public stories are of tasks 1, 2 and 3")
        return self


def stream(settings: BabiSettings, split: Split, seed: int, n: int | None) -> Iterator[World]:
    """Drawn stories without end, or the public ones."""
    if settings.public:
        yield from public.stream(settings.tasks, settings.n_items, split, seed, n)
        return
    for index in count():
        yield make_world(Random(f"babi/{seed}/{split}/{index}"), settings, WorldSpec(split, seed, index))


def make_world(random: Random, settings: BabiSettings, spec: WorldSpec) -> World:
    """One story with its questions, drawn again until it carries them; its task is the next in turn. A public one where that is set."""
    if settings.public:
        return public.make_world(random, settings.tasks, settings.n_items, spec)
    task = settings.tasks[spec.index % len(settings.tasks)]
    for _ in attempts(settings, f"story of task {task}"):
        story = StoryBuilder(random, spec.split, spec.split != "train" and random.random() < settings.new_names)
        try:
            TASKS[task](story)
        except DrawFailed:
            continue
        questions = {(question.text, question.before): question for question in story.questions}
        if len(questions) >= settings.n_items:
            chosen = sorted(random.sample(list(questions.values()), settings.n_items), key=lambda question: question.before)
            slices = ("new_name",) if story.new_names else ()
            return story_world(spec.id, task, story.statements, dict(enumerate(chosen)), *slices)
    raise AssertionError("attempts end with an error")


BABI = Suite(
    "babi",
    "stories of the twenty bAbI tasks, drawn, or the public ones of tasks 1 to 3",
    BabiSettings,
    make_world,
    stream=stream,
    files=lambda settings: public.files(settings.tasks) if settings.public else [],
    split_rule="test: the public test files; val: the last 80 stories of each train file; train: the stories before them",
    order=9,
)

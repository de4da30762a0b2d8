"""A story under construction: its statements, its possible questions, and the words that its split may use."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

from hippo_core.suites import lexicon
from hippo_core.suites.splits import belongs
from hippo_core.suites.types import Fact, Item, Split, World, after_all

ROOMS = tuple(group[0] for group in lexicon.PLACES)
BULKY = ("sofa", "carpet", "statue", "ladder", "boat", "wagon", "chess set")
OBJECTS = tuple(group[0] for group in lexicon.OBJECTS if group[0] not in BULKY)
PEOPLE_ROLES = ("who", "whom")


class DrawFailed(Exception):
    """The words drawn for a story cannot carry it; it is drawn again."""


@dataclass(frozen=True, slots=True)
class BabiQuestion:
    """A question of a story.

    `before` counts the statements that stand before it, `support` are the numbers of those that the answer follows from, `choices` the
    answers that the story makes plausible, `cue` the words that the question names. `spellings` are further accepted answers.
    """

    text: str
    answer: str
    before: int
    support: tuple[int, ...]
    choices: int
    cue: dict[str, str]
    spellings: tuple[str, ...] = ()


@dataclass
class StoryBuilder:
    """A story under construction. Every statement belongs to its split: by a person that it names, else by its words."""

    random: Random
    split: Split
    new_names: bool
    statements: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # each with its slots
    questions: list[BabiQuestion] = field(default_factory=list)

    def people(self, n: int) -> list[str]:
        """So many people that only this split names."""
        return self.random.sample(people_of(self.split, self.new_names), n)

    def add_statement(self, forms: Sequence[str], **slots: str) -> int:
        """Add a statement in one of its forms; returns its number. DrawFailed where no form belongs to the split."""
        candidates = [form.format(**slots) for form in forms]
        if not any(role in slots for role in PEOPLE_ROLES):
            candidates = [text for text in candidates if belongs(text, self.split)]
        if not candidates:
            raise DrawFailed
        text = self.random.choice(candidates)
        self.statements.append((text[0].upper() + text[1:], slots))
        return len(self.statements) - 1

    def ask(
        self, text: str, answer: str, support: Collection[int], choices: Collection[str] | int, spellings: Sequence[str] = (), **cue: str
    ) -> None:
        """Note a question that could be asked now, unless its answer is the only plausible one."""
        count = choices if isinstance(choices, int) else len(set(choices))
        if count > 1:
            gold = tuple(sorted(set(support)))
            self.questions.append(BabiQuestion(text.format(**cue), answer, len(self.statements), gold, count, cue, tuple(spellings)))


@cache
def people_of(split: Split, new_names: bool) -> tuple[str, ...]:
    """The given names of this split alone: a hash decides, so a statement about a person is in one split."""
    return tuple(name for name in lexicon.names(held_out=new_names) if belongs(f"babi/{name}", split))


def story_world(
    name: str, task: int, statements: Sequence[tuple[str, dict[str, str]]], questions: Mapping[int, BabiQuestion], *slices: str
) -> World:
    """The story up to the last of these questions, with the questions (by number) in its order."""
    needed = {number for question in questions.values() for number in question.support}
    facts = tuple(
        Fact(f"{name}.f{number}", name, text, slots, number, provenance="told", asked=number in needed)
        for number, (text, slots) in enumerate(statements[: max(question.before for question in questions.values())])
    )
    items = []
    for number, question in questions.items():
        answers = tuple(dict.fromkeys((question.answer, *question.spellings)))
        about = {"kind": f"qa{task}", "hops": len(question.support), "chance": 1 / question.choices, "cue": question.cue}
        known = after_all(facts[: question.before], question.support)
        items.append(Item(f"{name}.q{number}", name, question.text, answers, slices=slices, **about, **known))
    return World(name, facts, tuple(items))


Task = Callable[[StoryBuilder], None]

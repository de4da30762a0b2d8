"""Chains: facts of many relations in many words, and questions that one, two or three of them answer together.

    facts      Everything Anna knows comes from Ravo Kestin.   The Larnak lies at anchor in Tolbury.   Ravo Kestin plays for Olmar Rovers.
    branches   Which team does the person who taught Anna play for? -> Olmar Rovers
               Where do the side in which Anna plays train? -> unknown

Every question is answered by following it through the facts, so an answer is what they say. A quarter of the relations (`relations`) and
of the frames of all others are held out from training; validation uses these alone.
"""

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import NamedTuple

from hippo_core.suites import lexicon
from hippo_core.suites.splits import belongs
from hippo_core.suites.types import Split
from hippo_core.training.lessons import Branch, Lesson, forget
from hippo_core.training.relations import HEADS, QUESTIONS, RELATIONS, STATEMENTS, TAILS, Relation
from hippo_core.training.wide_words import WIDE

MOST_HOPS = 3
ASKED = {1: 2, 2: 3, 3: 3}  # hops: questions of a lesson
MISSING = 0.25  # of lessons: a link is taken away
DESCRIBED = {  # questions for what a description fits, of persons and of all else; the last is held out from training
    True: ("Who is {}?", "What is the name of {}?", "Please say who {} is.", "Can you name {}?"),
    False: ("What is {}?", "What is {} called?", "What is the name of {}?", "Can you name {}?"),
}
MENTIONS = {"river": "the {}", "thing": "the {}", "ship": "the {}", "dog": "the dog {}", "book": '"{}"'}
ONSETS = ("b", "br", "d", "dr", "f", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "r", "s", "sh", "st", "t", "th", "tr", "v", "w", "z")
NUCLEI = ("a", "e", "i", "o", "u", "ai", "ea", "ee", "o", "a", "e")
CODAS = ("", "", "n", "l", "r", "s", "m", "nd", "rt", "ck", "lm", "x", "st")
TAILS_OF_NAMES = {  # of a made-up name, by the kind of what bears it
    "town": ("", "bury", "ford", "ville", "burg", "stad", "mouth"),
    "team": (" Rovers", " United", " Hawks", " Wanderers", " Lions", " Athletic"),
    "company": (" & Sons", " Ltd", " Works", " Foods", " Brothers", " Motors"),
    "school": (" Academy", " College", " School", " Institute"),
    "street": (" Street", " Road", " Lane", " Avenue", " Square"),
    "river": ("", "e", "a"), "ship": ("", "a", " Star"), "dog": ("", "y"),
}  # fmt: skip
TITLES = ("The {} and the {}", "{} and {}", "One {} for the {}", "The {} in the {}", "No {}, No {}")


@dataclass(frozen=True, slots=True)
class Link:
    """A fact: a relation between two named things."""

    relation: Relation
    head: str
    tail: str


class Step(NamedTuple):
    """One hop: from a relation's head to its tail, or back."""

    relation: Relation
    back: bool


class Walk(NamedTuple):
    """From a named thing through steps to an answer: the facts on the way, by their indices."""

    start: str
    steps: tuple[Step, ...]
    facts: tuple[int, ...]
    answer: str


def joined_facts(random: Random, n_facts: int, split: Split) -> Lesson:
    """Facts in any order, several of each relation, and questions of one to three hops; of some lessons a link is missing."""
    return _lesson(random, draw_links(random, max(4, n_facts), split), split)


def joined_facts_alone(random: Random, n_facts: int, split: Split) -> Lesson:
    """Two to four facts that join, with little beside them: what a memory delivers that found the way. `n_facts` is not heeded."""
    return _lesson(random, draw_links(random, random.choice((2, 3, 3, 4)), split), split)


def _lesson(random: Random, links: list[Link], split: Split) -> Lesson:
    facts = tuple((tell(random, link, split), (link.head, link.tail)) for link in links)
    found = walks(links)
    branches = []
    for hops, most in ASKED.items():
        of_length = [walk for walk in found if len(walk.steps) == hops]
        for walk in random.sample(of_length, min(most, len(of_length))):
            branches.append(Branch(ask(random, walk, split), walk.answer, walk.facts, True, f"{hops} hop{'s' if hops > 1 else ''}"))
    lesson = Lesson(facts, tuple(branches))
    joints = sorted({index for branch in branches for index in branch.gold if len(branch.gold) > 1})
    return forget(lesson, {random.choice(joints)}) if joints and random.random() < MISSING else lesson


def draw_links(random: Random, count: int, split: Split) -> list[Link]:
    """So many facts in any order: one chain of relations, or two, told of several things, so that most facts have near competitors.

    Each head has one tail by a relation. A link goes on from what is there already where it can; some share their tail.
    """
    relations = [relation for relation in RELATIONS if split != "train" or not relation.held_out]
    plans = [plan(random, relations) for _ in range(2 if count > 9 else 1)]
    links: dict[tuple[str, str], Link] = {}
    names: dict[str, list[str]] = {}

    def new(kind: str) -> str:
        known = names.setdefault(kind, [])
        while (name := draw_name(random, kind, split)) in known:
            pass
        known.append(name)
        return name

    while len(links) < count:
        chosen, thing = random.choice(plans), ""
        for relation in chosen[random.randrange(len(chosen)) if links and random.random() < 0.3 else 0 :]:
            heads = [name for name in names.get(relation.head, ()) if (relation.name, name) not in links]
            head = thing if thing in heads else random.choice(heads) if heads and random.random() < 0.3 else new(relation.head)
            others = [name for name in names.get(relation.tail, ()) if name != head]
            thing = random.choice(others) if others and random.random() < 0.12 else new(relation.tail)
            if len(links) < count:
                links[relation.name, head] = Link(relation, head, thing)
    return random.sample(list(links.values()), count)


def plan(random: Random, relations: list[Relation]) -> list[Relation]:
    """Two or three different relations of which each goes on where the one before it ends."""
    while True:
        chain = [random.choice(relations)]
        while len(chain) < MOST_HOPS:
            further = [relation for relation in relations if relation.head == chain[-1].tail and relation not in chain]
            if not further:
                break
            chain.append(random.choice(further))
        if len(chain) > 1:
            return chain


def walks(links: list[Link]) -> list[Walk]:
    """All ways of up to three hops in which every hop has exactly one fact to take, none is taken twice and nothing is met again."""
    found, ends = [], [Walk(name, (), (), name) for name in dict.fromkeys(name for link in links for name in (link.head, link.tail))]
    for _ in range(MOST_HOPS):
        ends = [longer for walk in ends for longer in _hops(links, walk)]
        found += ends
    return found


def _hops(links: list[Link], walk: Walk) -> list[Walk]:
    met = {walk.start, *(name for index in walk.facts for name in (links[index].head, links[index].tail))}
    hops: dict[tuple[str, bool], list[int]] = {}
    for index, link in enumerate(links):
        if walk.answer == link.head:
            hops.setdefault((link.relation.name, False), []).append(index)
        elif walk.answer == link.tail:
            hops.setdefault((link.relation.name, True), []).append(index)
    longer = []
    for (_, back), [index, *more] in hops.items():
        end = links[index].head if back else links[index].tail
        if not more and end not in met:
            longer.append(Walk(walk.start, (*walk.steps, Step(links[index].relation, back)), (*walk.facts, index), end))
    return longer


def tell(random: Random, link: Link, split: Split) -> str:
    """A fact as a sentence."""
    relation = link.relation
    frame = random.choice(frames(relation, STATEMENTS, split))
    return sentence(frame.format(h=mention(relation.head, link.head), t=mention(relation.tail, link.tail)) + ".")


def ask(random: Random, walk: Walk, split: Split) -> str:
    """A question that names the start alone; what lies between is described."""
    first = walk.steps[0]
    words = mention(first.relation.tail if first.back else first.relation.head, walk.start)
    for step in walk.steps[:-1]:
        words = describe(random, step, words, split)
    last = walk.steps[-1]
    if not last.back and random.random() < 0.6:
        return sentence(random.choice(frames(last.relation, QUESTIONS, split)).format(h=words) + "?")
    forms = DESCRIBED[(last.relation.head if last.back else last.relation.tail) == "person"]
    return random.choice(forms[:-1] if split == "train" else forms[-1:]).format(describe(random, last, words, split))


def describe(random: Random, step: Step, words: str, split: Split) -> str:
    """What a step leads to, by the words for what it starts from."""
    frame = random.choice(frames(step.relation, HEADS if step.back else TAILS, split))
    return frame.format(h=words, t=words)


def frames(relation: Relation, use: int, split: Split) -> tuple[str, ...]:
    """The frames that a split may use: those of training, or those that it never sees."""
    return relation.seen(use) if split == "train" else relation.unseen(use)


def mention(kind: str, name: str) -> str:
    """A name with what belongs to it: the violin, "Lamp and Anchor"."""
    return MENTIONS.get(kind, "{}").format(name)


def sentence(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[0].upper() + text[1:]


def draw_name(random: Random, kind: str, split: Split) -> str:
    """A name of this kind that belongs to the split: given, made up of syllables, or of words."""
    while True:
        if kind == "thing":
            name = random.choice(things())
        elif kind == "book":
            name = random.choice(TITLES).format(*(word.capitalize() for word in random.sample(things(), 2)))
        elif kind == "person":
            name = person(random)
        else:
            name = made_up(random, random.choice((1, 2, 2))) + random.choice(TAILS_OF_NAMES[kind])
        if all(may_bear(part, split) for part in (name.split() if kind == "person" else [name])):
            return name


def person(random: Random) -> str:
    """A given name, a made-up one, or either with a surname."""
    first = random.choice(given()) if random.random() < 0.6 else made_up(random, 2)
    draw = random.random()
    return first if draw < 0.6 else f"{first} {made_up(random, 2)}" if draw < 0.85 else f"{first} {random.choice(lexicon.SURNAMES)}"


def may_bear(name: str, split: Split) -> bool:
    """Whether a split may use a name, or a part of a person's: by its hash, and training uses none that lessons never have."""
    return belongs(name, split) and (split != "train" or not lexicon.is_held_out(name))


def made_up(random: Random, syllables: int) -> str:
    """Ravost, Thealm, Drukeen."""
    name = "".join(random.choice(ONSETS) + random.choice(NUCLEI) for _ in range(syllables)) + random.choice(CODAS)
    return name.capitalize() if len(name) > 2 else made_up(random, syllables + 1)


@cache
def given() -> tuple[str, ...]:
    """Given names; which split uses which is decided by their hash."""
    return lexicon.names(held_out=False) + lexicon.names(held_out=True)


@cache
def things() -> tuple[str, ...]:
    """The wide words for things that are one word."""
    return tuple(word for group in WIDE.things for word in group if " " not in word)

"""Dialogues that the lab's models can read, in the words of its suites: who did what, what somebody is like, and what is taken back.

A third of the questions ask in the words of the turn, a third in other words, a third for what a later turn corrected. Salience and
position are crossed: question j of dialogue i has cell (5 i + j + i // 9) mod 9 of their table, so that each cell has as many questions as
any other, give or take one; the kind of question changes after every round of the nine. In 27 dialogues each cell meets each category
alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import POSITIONS, SALIENCES, Dialogue, DialogueQuestion, KeyType, Position, Salience, Turn
from hippo_core.suites import lexicon, multi, wording
from hippo_core.suites.episodic import EpisodicSettings, make_events, make_question_about
from hippo_core.suites.types import Split, WorldSpec

CATEGORIES = ("identity", "technical", "multi-topic")
EVENTS = {"identity": 0.0, "technical": 1.0, "multi-topic": 0.5}  # share of what is told that is an event
LENGTHS = (16, 32, 48, 64, 80, 96, 120)  # turns
QUESTIONS, KINDS = 5, ("fact", "paraphrase", "correction")
TOLD = 0.6  # share of the turns that tell something
STRESS: dict[Salience, str] = {"high": "Please remember this: {fact}", "medium": "{fact}", "low": "By the way: {fact}"}
PREFERENCES = ("color", "drink", "food", "music")  # relations that say what somebody likes
FILLERS = {
    "user": (
        "Let me think for a moment.", "That is all for now.", "Are you still there?", "Thank you, that helps.", "Where was I?",
        "It has been a long day.", "Good, let us go on.", "I will tell you more in a minute.",
    ),
    "assistant": (
        "I see.", "Thank you for telling me.", "What happened then?", "That sounds good.", "Go on, please.", "Is there anything else?",
        "How nice.", "I am listening.",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class DialogueEvent:
    """Something to be told: its sentence, what kind of information it is."""

    text: str
    key: KeyType


@dataclass(frozen=True)
class DialogueProbe:
    """What is asked about: where and how stressed it is told, the question, and what is told before and corrected."""

    position: Position
    salience: Salience
    kind: str
    told: DialogueEvent
    question: str
    answer: str
    before: DialogueEvent | None = None
    refuted: str = ""


def generate(n: int, seed: int = 1337, split: Split = "test", lengths: Sequence[int] = LENGTHS) -> tuple[Dialogue, ...]:
    """So many dialogues. Those of another split share no fact with these. LabError for a length that holds no five questions."""
    if n < 1 or not lengths or min(lengths) < min(LENGTHS):
        raise LabError(f"expected at least one dialogue of {min(LENGTHS)} turns or more, got n={n}, lengths={list(lengths)}")
    return tuple(_dialogue(index, seed, split, lengths) for index in range(n))


def cell_of(index: int, number: int) -> tuple[Salience, Position, str]:
    """Salience, position and kind of a question, by the numbers of its dialogue and its own, from 0."""
    cells = len(SALIENCES) * len(POSITIONS)
    round_, cell = divmod(QUESTIONS * index + number, cells)
    cell = (cell + index // cells) % cells
    return SALIENCES[cell // len(POSITIONS)], POSITIONS[cell % len(POSITIONS)], KINDS[round_ % len(KINDS)]


def _dialogue(index: int, seed: int, split: Split, lengths: Sequence[int]) -> Dialogue:
    random = Random(f"conversation/{seed}/{split}/{index}")
    category = CATEGORIES[index % len(CATEGORIES)]
    length = lengths[index // len(CATEGORIES) % len(lengths)]
    asked, others = _contents(random, category, length, WorldSpec(split, seed, index))
    places = _places(random, asked, length)
    spoken: dict[int, tuple[DialogueEvent, Salience | None]] = {}
    corrects: dict[int, int] = {}
    for one, (before, place) in zip(asked, places, strict=True):
        spoken[place] = one.told, one.salience
        if one.before is not None:
            spoken[before] = one.before, "medium"
            corrects[place] = before
    free = [place for place in range(length) if place not in spoken]
    for place, told in zip(random.sample(free, min(len(free), len(others))), others, strict=False):
        spoken[place] = told, random.choice(SALIENCES)
    turns = tuple(_turn(random, place, spoken.get(place), corrects.get(place), category) for place in range(length))
    questions = tuple(
        DialogueQuestion(
            id=str(number), question=one.question, answer=one.answer, entities=(one.answer,), position=one.position, salience=one.salience,
            kind=one.kind, evidence=(str(place),), refuted=(one.refuted,) if one.refuted else (),
        )
        for number, (one, (_, place)) in enumerate(zip(asked, places, strict=True))
    )  # fmt: skip
    return Dialogue(id=f"{split}-{index:03d}", turns=turns, questions=questions, category=category)


def _turn(random: Random, place: int, said: tuple[DialogueEvent, Salience | None] | None, corrects: int | None, category: str) -> Turn:
    speaker = ("user", "assistant")[place % 2]
    if said is None:
        return Turn(id=str(place), speaker=speaker, text=random.choice(FILLERS[speaker]))
    told, salience = said
    text = STRESS[salience or "medium"].format(fact=told.text)
    earlier = () if corrects is None else (str(corrects),)
    return Turn(id=str(place), speaker=speaker, text=text, key=told.key, salience=salience, category=category, corrects=earlier)


def _places(random: Random, asked: Sequence[DialogueProbe], length: int) -> list[tuple[int, int]]:
    """Where each is told, in the third of the dialogue that is its position, and where what it corrects is (-1: nothing)."""
    while True:
        taken: set[int] = set()
        found = []
        for one in asked:
            third = POSITIONS.index(one.position)
            here = [p for p in range(-(-third * length // 3), -(-(third + 1) * length // 3)) if p not in taken]
            place = random.choice(here[1:] if one.before and third == 0 else here)
            before = random.choice([p for p in range(place) if p not in taken] or [-1]) if one.before else -1
            taken |= {place, before} - {-1}
            found.append((before, place))
        if all(before >= 0 or one.before is None for one, (before, _) in zip(asked, found, strict=True)):
            return found


def _contents(random: Random, category: str, length: int, spec: WorldSpec) -> tuple[list[DialogueProbe], list[DialogueEvent]]:
    """What is asked about, and what else is told. Drawn again where an event cannot be asked for."""
    cells = [cell_of(spec.index, number) for number in range(QUESTIONS)]
    of_events = [kind != "correction" and _is_event(category, number) for number, (_, _, kind) in enumerate(cells)]
    others = round(TOLD * length) - QUESTIONS
    n_events = sum(of_events) + round(EVENTS[category] * others)
    while True:
        events = _events(random, spec, n_events, [kind for (_, _, kind), event in zip(cells, of_events, strict=True) if event])
        if events is not None:
            break
    people = [name for name in lexicon.names(held_out=False) if not any(name in told.text for told, _ in events)]
    statements = _statements(random, QUESTIONS + others - n_events, people)
    drawn = (iter(events[: sum(of_events)]), statements)
    asked = []
    for (salience, position, kind), event in zip(cells, of_events, strict=True):
        if event:
            told, (question, answer) = next(drawn[0])
            asked.append(DialogueProbe(position, salience, kind, told, question, answer))
        else:
            asked.append(_about(random, next(drawn[1]), salience, position, kind))
    return asked, [*(told for told, _ in events[sum(of_events) :]), *(_stated(random, one) for one in drawn[1])]


def _is_event(category: str, number: int) -> bool:
    return category == "technical" or (category == "multi-topic" and number % 2 == 0)


def _events(random: Random, spec: WorldSpec, count: int, kinds: Sequence[str]) -> list[tuple[DialogueEvent, tuple[str, str]]] | None:
    """Events with question and answer; those that are asked about first, as each kind says; None where one cannot be asked for."""
    if not count:
        return []
    settings = EpisodicSettings(n_facts=max(4, count), held_out=False, n_competitors=min(3, count - 1))
    events = make_events(random, settings, spec, motion=False)[:count]
    words = [wording.choose_words(random, event) for event in events]
    found = []
    for number, chosen in enumerate(words):
        answer = question = ""
        if number < len(kinds):
            rung = "paraphrase" if kinds[number] == "paraphrase" else "partial"
            drawn = make_question_about(random, events, words, number, rung, settings, training=True)
            if drawn is None:
                return None
            question, answer = drawn.question, chosen.slots()[drawn.kind]
        found.append((DialogueEvent(wording.render_fact(random, chosen), "fact"), (question, answer)))
    return found


def _statements(random: Random, count: int, people: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Different pairs of a person and a relation; each person has several, each relation too."""
    size = max(3, -(-count // 5))
    pairs = [(who, relation) for who in random.sample(people, size) for relation in multi.RELATIONS]
    return iter(random.sample(pairs, count))


def _about(random: Random, pair: tuple[str, str], salience: Salience, position: Position, kind: str) -> DialogueProbe:
    who, relation = pair
    answer, earlier = random.sample(multi.RELATIONS[relation].values, 2)
    corrects = kind == "correction"
    told = DialogueEvent(multi.render_statement(random, (who, relation, answer), corrects), _key(relation))
    question, _ = multi.ask(random, (who, relation, answer), "paraphrase" if kind == "paraphrase" else "exact", training=True)
    before = DialogueEvent(multi.render_statement(random, (who, relation, earlier), False), _key(relation)) if corrects else None
    return DialogueProbe(position, salience, kind, told, question, answer, before, earlier if corrects else "")


def _stated(random: Random, pair: tuple[str, str]) -> DialogueEvent:
    who, relation = pair
    return DialogueEvent(
        multi.render_statement(random, (who, relation, random.choice(multi.RELATIONS[relation].values)), False), _key(relation)
    )


def _key(relation: str) -> KeyType:
    return "preference" if relation in PREFERENCES else "identity"

"""Dialogues that the lab's models can read, in the words of its suites: who did what, what somebody is like, and what is taken back.

A third of the questions ask in the words of the turn, a third in other words, a third for what a later turn corrected. Salience and
position are crossed: question j of dialogue i has cell (5 i + j + i // 9) mod 9 of their table, so that each cell has as many questions as
any other, give or take one; the kind of question changes after every round of the nine. In 27 dialogues each cell meets each category
equally often.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import POSITIONS, SALIENCES, Dialogue, DialogueQuestion, KeyType, Position, Salience, Turn
from hippo_core.suites import lexicon, multi, wording
from hippo_core.suites.episodic import EpisodicSettings, make_events, make_question_about
from hippo_core.suites.types import Split, WorldSpec

CATEGORIES = ("identity", "technical", "multi-topic")
EVENTS = {"identity": 0.0, "technical": 1.0, "multi-topic": 0.5}  # share of the statements that are events
LENGTHS = (16, 32, 48, 64, 80, 96, 120)  # turns
QUESTIONS, KINDS = 5, ("fact", "paraphrase", "correction")
FACT_SHARE = 0.6  # share of the turns that state something
STRESS: dict[Salience, str] = {"high": "Please remember this: {fact}", "medium": "{fact}", "low": "By the way: {fact}"}
INSTRUCTION, INSTRUCTIONS = "When you are asked, answer that {fact}", 3  # of so many statements one is such an order
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
    """A statement: its sentence, and what kind of information it is."""

    text: str
    key: KeyType


@dataclass(frozen=True)
class DialogueProbe:
    """What a question is about: its position and stress, the question, and the earlier statement that it corrects."""

    position: Position
    salience: Salience
    kind: str
    event: DialogueEvent
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
    turn_indices = _turn_indices(random, asked, length)
    spoken: dict[int, tuple[DialogueEvent, Salience | None]] = {}
    corrects: dict[int, int] = {}
    for probe, (before, turn_index) in zip(asked, turn_indices, strict=True):
        spoken[turn_index] = probe.event, probe.salience
        if probe.before is not None:
            spoken[before] = probe.before, "medium"
            corrects[turn_index] = before
    free = [turn_index for turn_index in range(length) if turn_index not in spoken]
    for turn_index, event in zip(random.sample(free, min(len(free), len(others))), others, strict=False):
        spoken[turn_index] = event, random.choice(SALIENCES)
    turns = tuple(_turn(random, turn_index, spoken.get(turn_index), corrects.get(turn_index), category) for turn_index in range(length))
    questions = tuple(
        DialogueQuestion(
            id=str(number), question=probe.question, answer=probe.answer, entities=(probe.answer,), position=probe.position,
            salience=probe.salience, kind=probe.kind, evidence=(str(turn_index),), refuted=(probe.refuted,) if probe.refuted else (),
        )
        for number, (probe, (_, turn_index)) in enumerate(zip(asked, turn_indices, strict=True))
    )  # fmt: skip
    return Dialogue(id=f"{split}-{index:03d}", turns=turns, questions=questions, category=category)


def _turn(random: Random, index: int, fact: tuple[DialogueEvent, Salience | None] | None, corrects: int | None, category: str) -> Turn:
    speaker = ("user", "assistant")[index % 2]
    if fact is None:
        return Turn(id=str(index), speaker=speaker, text=random.choice(FILLERS[speaker]))
    event, salience = fact
    text = STRESS[salience or "medium"].format(fact=event.text)
    earlier = () if corrects is None else (str(corrects),)
    return Turn(id=str(index), speaker=speaker, text=text, key=event.key, salience=salience, category=category, corrects=earlier)


def _turn_indices(random: Random, asked: Sequence[DialogueProbe], length: int) -> list[tuple[int, int]]:
    """The turn of each, within the third of its position, and the turn of what it corrects (-1: nothing)."""
    while True:
        used: set[int] = set()
        pairs = []
        for probe in asked:
            third = POSITIONS.index(probe.position)
            here = [p for p in range(-(-third * length // 3), -(-(third + 1) * length // 3)) if p not in used]
            index = random.choice(here[1:] if probe.before and third == 0 else here)
            before = random.choice([p for p in range(index) if p not in used] or [-1]) if probe.before else -1
            used |= {index, before} - {-1}
            pairs.append((before, index))
        if all(before >= 0 or probe.before is None for probe, (before, _) in zip(asked, pairs, strict=True)):
            return pairs


def _contents(random: Random, category: str, length: int, spec: WorldSpec) -> tuple[list[DialogueProbe], list[DialogueEvent]]:
    """What is asked about, and the other statements. Drawn again where an event cannot be asked for."""
    cells = [cell_of(spec.index, number) for number in range(QUESTIONS)]
    is_event = [category == "technical" or (category == "multi-topic" and number % 2 == 0) for number in range(QUESTIONS)]
    of_events = [event and kind != "correction" for event, (_, _, kind) in zip(is_event, cells, strict=True)]
    others = round(FACT_SHARE * length) - QUESTIONS
    n_events = sum(of_events) + round(EVENTS[category] * others)
    kinds, events = [kind for (_, _, kind), event in zip(cells, of_events, strict=True) if event], None
    while events is None:
        events = _events(random, spec, n_events, kinds)
    people = [name for name in lexicon.names(held_out=False) if not any(name in event.text for event, _ in events)]
    asked_events, statements = iter(events[: sum(of_events)]), _statements(random, QUESTIONS + others - n_events, people)
    asked = []
    for (salience, position, kind), event in zip(cells, of_events, strict=True):
        if event:
            fact, (question, answer) = next(asked_events)
            asked.append(DialogueProbe(position, salience, kind, fact, question, answer))
        else:
            probe = _about(random, next(statements), salience, position, kind)
            instructs = kind != "correction" and (spec.index + len(asked)) % INSTRUCTIONS == 0
            asked.append(replace(probe, event=_instructed(probe.event)) if instructs else probe)
    unasked = [event for event, _ in events[sum(of_events) :]]
    for number, (who, relation) in enumerate(statements):
        event = _statement(random, who, relation, random.choice(multi.RELATIONS[relation].values))
        unasked.append(event if number % INSTRUCTIONS else _instructed(event))
    return asked, unasked


def _events(random: Random, spec: WorldSpec, count: int, kinds: Sequence[str]) -> list[tuple[DialogueEvent, tuple[str, str]]] | None:
    """Events with question and answer; those that are asked about first, as each kind says; None where one cannot be asked for."""
    if not count:
        return []
    settings = EpisodicSettings(n_facts=max(4, count), held_out=False, n_competitors=min(3, count - 1))
    events = make_events(random, settings, spec, motion=False)[:count]
    words = [wording.choose_words(random, event) for event in events]
    drawn_events = []
    for number, chosen in enumerate(words):
        answer = question = ""
        if number < len(kinds):
            rung = "paraphrase" if kinds[number] == "paraphrase" else "partial"
            drawn = make_question_about(random, events, words, number, rung, settings, training=True)
            if drawn is None:
                return None
            question, answer = drawn.question, chosen.slots()[drawn.kind]
        drawn_events.append((DialogueEvent(wording.render_fact(random, chosen), "fact"), (question, answer)))
    return drawn_events


def _statements(random: Random, count: int, people: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Different pairs of a person and a relation; each person has several, each relation too."""
    size = max(3, -(-count // 5))
    pairs = [(who, relation) for who in random.sample(people, size) for relation in multi.RELATIONS]
    return iter(random.sample(pairs, count))


def _about(random: Random, pair: tuple[str, str], salience: Salience, position: Position, kind: str) -> DialogueProbe:
    who, relation = pair
    answer, earlier = random.sample(multi.RELATIONS[relation].values, 2)
    corrects = kind == "correction"
    event = _statement(random, who, relation, answer, corrects)
    question, _ = multi.ask(random, (who, relation, answer), "paraphrase" if kind == "paraphrase" else "exact", training=True)
    before = _statement(random, who, relation, earlier) if corrects else None
    return DialogueProbe(position, salience, kind, event, question, answer, before, earlier if corrects else "")


def _instructed(event: DialogueEvent) -> DialogueEvent:
    """What is stated, as an order to answer so."""
    return DialogueEvent(INSTRUCTION.format(fact=event.text), "instruction")


def _statement(random: Random, who: str, relation: str, value: str, corrects: bool = False) -> DialogueEvent:
    key: KeyType = "preference" if relation in PREFERENCES else "identity"
    return DialogueEvent(multi.render_statement(random, (who, relation, value), corrects), key)

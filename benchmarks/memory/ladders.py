"""How well facts are found that are told off the lab's own words: two ladders of 1,000 facts with near competitors and 240 questions each.

    python benchmarks/memory/ladders.py [--model hippo-tiny] [--ladder first second] [--preset rag_bm25 ...] [--seed 1337]

The frames, their questions and all words stand in ladder_first.yaml and ladder_second.yaml, written by hand and before any score was
seen; no content word of theirs is one of a suite, of a lesson or of the notes. Each rung has 60 questions: `exact` repeats the fact's
words, `partial` names some of its slots only, `paraphrase` asks in other words, `noisy` is the exact question with slips of the fingers.
Printed is recall@1, the share of questions whose one right fact comes first, in percent.
"""

import argparse
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal

import yaml

from hippo_core.suites.types import RUNGS, Fact, Item, Settings, Suite, World

Name = Literal["first", "second"]
NAMES: tuple[Name, ...] = ("first", "second")
FACTS, QUESTIONS = 1000, 60  # facts of a ladder, questions of a rung
FAMILIES = 3  # facts of a frame that have a near competitor in each of their slots
MISSPELT, DROPPED = 0.35, 0.1  # shares of the words of a noisy question
WORD = r"([A-Za-z][A-Za-z-]{3,})"  # what slips happen to
ASKING = {"what", "when", "whom", "whose", "which", "where", "much", "many"}  # left as they are: they say what is asked for
PRESETS = ("rag_bm25", "rag_grams", "rag_dense[encoder=minilm]", "rag_sum", "rag_fitted", "rag_head", "rag_head_fitted")
SUITE = Suite("ladder", "facts off the lab's own words", Settings)


def named(form: str) -> tuple[str, ...]:
    """The slots that a form names, in order."""
    return tuple(re.findall(r"\{(\w+)\}", form))


@dataclass(frozen=True)
class Frame:
    """A kind of fact: how it is told, and how it is asked for the one slot that its questions leave out, by rung (noisy: as exact)."""

    fact: str
    questions: dict[str, str]

    @property
    def slots(self) -> tuple[str, ...]:
        return named(self.fact)

    @property
    def answer(self) -> str:
        [slot] = set(self.slots) - set(named(self.questions["exact"]))
        return slot


@dataclass(frozen=True)
class Words:
    """A ladder's frames, and the values of each slot with what else each is called (the value itself, where it has no other name)."""

    frames: tuple[Frame, ...]
    slots: dict[str, dict[str, str]]


@cache
def words_of(name: Name) -> Words:
    """The words of a ladder, from its file."""
    made = yaml.safe_load((Path(__file__).parent / f"ladder_{name}.yaml").read_text(encoding="utf-8"))
    slots = {slot: {value: other or value for value, other in values.items()} for slot, values in made["slots"].items()}
    frames = [Frame(frame["fact"], {rung: frame["exact" if rung == "noisy" else rung] for rung in RUNGS}) for frame in made["frames"]]
    return Words(tuple(frames), slots)


@dataclass(frozen=True)
class NamedFact:
    """A fact before it has a place in the world: its frame's number and the value of each of its slots."""

    frame: int
    values: dict[str, str]


class Index:
    """Which facts have these values, whatever they tell."""

    def __init__(self, facts: list[NamedFact]):
        self._having: dict[tuple[str, str], set[int]] = defaultdict(set)
        for number, fact in enumerate(facts):
            for slot, value in fact.values.items():
                self._having[slot, value].add(number)

    def fitting(self, cue: dict[str, str]) -> set[int]:
        return set.intersection(*(self._having[pair] for pair in cue.items()))

    def picks_out(self, cue: dict[str, str]) -> bool:
        """Whether the cue fits one fact alone, and several as soon as any one of its slots is left out."""
        rests = [{slot: value for slot, value in cue.items() if slot != left_out} for left_out in cue]
        return len(cue) > 1 and len(self.fitting(cue)) == 1 and all(len(self.fitting(rest)) > 1 for rest in rests)


def draw_facts(random: Random, words: Words, number: int, n: int) -> list[NamedFact]:
    """`n` facts of a frame, no two with the same cue: families in which a fact differs from the first in one slot and the answer, and
    facts drawn alone."""
    frame = words.frames[number]
    cue_slots = [slot for slot in frame.slots if slot != frame.answer]
    drawn: dict[tuple[str, ...], NamedFact] = {}

    def add(values: dict[str, str], fresh: tuple[str, ...]) -> dict[str, str]:
        while True:
            other = {slot: random.choice([value for value in words.slots[slot] if value != values.get(slot)]) for slot in fresh}
            made = {slot: {**values, **other}[slot] for slot in frame.slots}
            key = tuple(made[slot] for slot in cue_slots)
            if key not in drawn:
                drawn[key] = NamedFact(number, made)
                return made

    for _ in range(FAMILIES):
        head = add({}, frame.slots)
        for slot in cue_slots:
            add(head, (slot, frame.answer))
    while len(drawn) < n:
        add({}, frame.slots)
    return list(drawn.values())


def misspell(random: Random, word: str) -> str:
    """Two letters swapped, one left out, or one doubled; never the first."""
    at = random.randrange(1, len(word) - 1)
    slip = random.randrange(3)
    if slip == 0 and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if slip == 1:
        return word[:at] + word[at + 1 :]
    return word[:at] + word[at] + word[at:]


def add_slips(random: Random, form: str, values: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The question with words misspelt and dropped, at least two in all, and the values of which no word is gone."""
    while True:
        slips, used, parts = 0, set(), []
        for part in re.split(r"(\{\w+\})", form):
            slot = part.strip("{}") if part.startswith("{") else None
            noisy = []
            for piece in re.split(WORD, values[slot] if slot else part):
                draw = random.random() if re.fullmatch(WORD, piece) and piece.lower() not in ASKING else 1.0
                slips += draw < MISSPELT + DROPPED
                if draw < DROPPED and slot:
                    used.add(slot)
                noisy.append("" if draw < DROPPED else misspell(random, piece) if draw < MISSPELT + DROPPED else piece)
            parts.append("".join(noisy))
        if slips > 1:
            question = re.sub(r" (?=[?,:])", "", " ".join("".join(parts).split()))
            return question, {slot: values[slot] for slot in named(form) if slot not in used}


def ask(random: Random, words: Words, fact: NamedFact, rung: str) -> tuple[str, dict[str, str]]:
    """A question about a fact, and the values that it names, in the fact's words."""
    form = words.frames[fact.frame].questions[rung]
    if rung == "noisy":
        question, cue = add_slips(random, form, fact.values)
    else:
        called = {slot: words.slots[slot][value] if rung == "paraphrase" else value for slot, value in fact.values.items()}
        question, cue = form.format(**called), {slot: fact.values[slot] for slot in named(form)}
    return sentence(question), cue


def tokens(text: str) -> set[str]:
    """Words of three letters or more, and numbers."""
    return set(re.findall(r"\w{3,}|\d+", text.lower()))


def draw_questions(random: Random, words: Words, facts: list[NamedFact], index: Index, rung: str) -> list[tuple[int, str, dict[str, str]]]:
    """The questions of a rung, from all frames as evenly as can be: the number of the right fact, the question, and what it names."""
    waiting: dict[int, list[int]] = defaultdict(list)
    for number in random.sample(range(len(facts)), len(facts)):
        waiting[facts[number].frame].append(number)
    drawn: list[tuple[int, str, dict[str, str]]] = []
    while len(drawn) < QUESTIONS:
        for frame in random.sample(range(len(words.frames)), len(words.frames)):
            while waiting[frame]:
                number = waiting[frame].pop()
                question, cue = ask(random, words, facts[number], rung)
                answer = facts[number].values[words.frames[frame].answer]
                if index.picks_out(cue) and not tokens(answer) & tokens(question):
                    drawn.append((number, question, cue))
                    break
    return drawn[:QUESTIONS]


def ladder(name: Name, seed: int = 1337) -> World:
    """A ladder as a world: its facts in an order drawn at random, all of them taught, and its questions rung by rung."""
    words, random, world = words_of(name), Random(f"{name}/{seed}"), f"ladder-{name}"
    sizes = [FACTS * (n + 1) // len(words.frames) - FACTS * n // len(words.frames) for n in range(len(words.frames))]
    all_facts = [entry for number, n in enumerate(sizes) for entry in draw_facts(random, words, number, n)]
    random.shuffle(all_facts)
    index = Index(all_facts)
    questions = [(rung, *drawn) for rung in RUNGS for drawn in draw_questions(random, words, all_facts, index, rung)]
    asked = {number for _, number, _, _ in questions}
    facts = tuple(
        Fact(
            id=f"{world}.f{number}",
            world=world,
            text=sentence(words.frames[entry.frame].fact.format(**entry.values)),
            slots=entry.values,
            time=number,
            provenance="told",
            asked=number in asked,
        )
        for number, entry in enumerate(all_facts)
    )
    taught = tuple(fact.id for fact in facts)
    items = []
    for question_number, (rung, number, question, cue) in enumerate(questions):
        slot = words.frames[all_facts[number].frame].answer
        items.append(
            Item(
                id=f"{world}.q{question_number}",
                world=world,
                question=question,
                answers=(all_facts[number].values[slot],),
                gold_facts=(facts[number].id,),
                kind=slot,
                rung=rung,
                chance=1 / len(words.slots[slot]),
                cue=cue,
                taught=taught,
            )
        )
    return World(world, facts, tuple(items))


def sentence(text: str) -> str:
    """The text with a capital letter, and "an" before a vowel."""
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    return text[0].upper() + text[1:]


def main() -> None:
    from retrieval import measure, method_of

    from hippo_core.models.load import load
    from hippo_core.models.spec import load_spec

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="hippo-tiny")
    parser.add_argument("--ladder", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--preset", nargs="+", default=PRESETS)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    lm = load(load_spec(options.model), threads=options.threads)
    for name in options.ladder:
        world = ladder(name, options.seed)
        print(
            f"\n{name} ladder, seed {options.seed}: {len(world.facts):,} facts, {len(world.items)} questions, {options.model}", flush=True
        )
        print(f"| method | {' | '.join(RUNGS)} | all | ms |\n|---|{'--:|' * (len(RUNGS) + 2)}")
        for preset in options.preset:
            label, method = method_of(lm, preset)
            rows, _, _ = measure(method, SUITE, world)
            hits = {
                rung: [row["recall_1"] for row, item in zip(rows, world.items, strict=True) if item.rung in rung]
                for rung in (*RUNGS, RUNGS)
            }
            shares = " | ".join(f"{100 * sum(some) / len(some):.1f}" for some in hits.values())
            print(f"| {label} | {shares} | {sum(row['retrieval_ms'] for row in rows) / len(rows):.1f} |", flush=True)
            method.forget()


if __name__ == "__main__":
    main()

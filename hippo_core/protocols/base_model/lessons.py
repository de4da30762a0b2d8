"""Lessons: what hippo-tiny is taught with. One lesson is a window of facts and many questions about it, answered in parallel.

A lesson becomes one sequence: the prompt's beginning and the facts once, then a branch for each question. A branch sees the beginning
and itself, never another branch, and its positions go on from the end of the facts; so every branch is exactly the prompt that the
model will meet at a test, for a fraction of the tokens. Restatements (the fact told again in another order, every word a target)
teach copying densely.
"""

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hippo_core.models.prompt import INSTRUCTION
from hippo_core.protocols.base_model.guidance import Target
from hippo_core.suites import babi, episodic, multi, semantic, settings_for, spatial, wording
from hippo_core.suites.types import RUNGS, Place, World

IGNORE = -100
Aim = tuple[str, int, tuple[int, ...]]  # kind, query position, key positions: a Target before its sequence has a number


@dataclass(frozen=True, slots=True)
class Branch:
    """What follows the facts: a question and its answer, or a restatement (empty question). `gold`: indices of the facts it needs."""

    question: str
    answer: str
    gold: tuple[int, ...]
    guided: bool = True


@dataclass(frozen=True, slots=True)
class Lesson:
    """Facts (text and the words of their slots) and branches; `plain`: without the chat template."""

    facts: tuple[tuple[str, tuple[str, ...]], ...]
    branches: tuple[Branch, ...]
    plain: bool = False


@dataclass
class Batch:
    """Token ids [B, T], positions [B, T], who sees whom [B, T, T], labels [B, T] (IGNORE where there is no loss), guidance."""

    ids: Tensor
    positions: Tensor
    mask: Tensor
    labels: Tensor
    weights: Tensor
    targets: list[Target]


def episodic_lesson(random: Random, n_facts: int, motion: bool) -> Lesson:
    """Facts by slot, on all four rungs, with restatements."""
    settings = episodic.EpisodicSettings(n_facts=max(4, n_facts), n_competitors=0, swaps=random.choice((0.0, 0.0, 0.5)))
    place = Place("train", 0, 0)
    events = episodic.make_events(random, settings, place, motion)[:n_facts]
    words = [wording.choose_words(random, event) for event in events]
    notes = ("", "", "", "", " Please remember this.", " It was a great success.")
    facts = tuple((wording.tell(random, w) + random.choice(notes), tuple(w.slots().values())) for w in words)
    branches = []
    for number in range(N_QUESTIONS):
        gold = random.randrange(len(events))
        drawn = episodic.make_question_about(random, events, words, gold, RUNGS[number % 4], settings, True)
        if drawn:
            branches.append(Branch(drawn.question, words[gold].slots()[drawn.kind], (gold,)))
    for _ in range(N_RESTATEMENTS):
        gold = random.randrange(len(events))
        branches.append(Branch("", wording.tell(random, words[gold]), (gold,)))
    return Lesson(facts, tuple(branches))


def world_lesson(random: Random, world: World) -> Lesson:
    """Any suite's train world: the facts that one of its items was taught, and all questions that were asked at that moment."""
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
        )
        for item in world.items
        if item.taught == taught
    )
    return Lesson(facts, tuple(branches))


def gold_only(random: Random, lesson: Lesson) -> Lesson:
    """The same with one question and only the facts that it needs, as under the oracle condition."""
    branch = random.choice([branch for branch in lesson.branches if branch.question] or list(lesson.branches))
    kept = sorted(branch.gold)
    facts = tuple(lesson.facts[index] for index in kept)
    return Lesson(facts, (Branch(branch.question, branch.answer, tuple(kept.index(index) for index in branch.gold)),))


N_QUESTIONS, N_RESTATEMENTS = 8, 4


def trim(random: Random, lesson: Lesson, n_facts: int) -> Lesson:
    """The same with at most `n_facts` facts, and the questions that these still answer.

    Dropping facts that are not gold never changes an answer: the last mention stays the last, a rumor or a near miss is not needed.
    """
    kept: set[int] = set()
    for branch in random.sample(lesson.branches, len(lesson.branches)):
        if len(kept | set(branch.gold)) <= max(n_facts, len(branch.gold)):
            kept |= set(branch.gold)
    others = [index for index in range(len(lesson.facts)) if index not in kept]
    kept |= set(random.sample(others, max(0, min(len(others), n_facts - len(kept)))))
    order = sorted(kept)
    branches = [
        Branch(b.question, b.answer, tuple(order.index(index) for index in b.gold), b.guided)
        for b in lesson.branches
        if kept >= set(b.gold)
    ]
    return Lesson(tuple(lesson.facts[index] for index in order), tuple(branches))


STOP_WORDS = frozenset(  # of questions: all else is content
    (
        *("who", "what", "where", "when", "which", "person", "thing", "place", "time", "city", "name", "did", "do", "does", "was", "were"),
        *("is", "are", "has", "have", "the", "a", "an", "at", "in", "on", "to", "of", "that", "by", "tell", "me", "you", "recall"),
    )
)


class Encoded(NamedTuple):
    """A tokenised text: ids, tokens, and each token's span of characters."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class Encoder:
    """Turns lessons into batches with a given tokenizer."""

    def __init__(self, tokenizer):
        self.backend = tokenizer.backend_tokenizer
        ids = tokenizer.convert_tokens_to_ids
        self.pad, self.end, self.user, self.assistant = ids(["<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"])
        self.begin = ids("<|begin|>")
        self.newline = self.encode(["a\na"])[0].ids[1]
        self.head = [self.begin, ids("<|system|>"), *self.encode([INSTRUCTION])[0].ids, self.end, self.user]

    def encode(self, texts: list[str]) -> list[Encoded]:
        """Tokens of each text alone."""
        return [Encoded(e.ids, e.tokens, e.offsets) for e in self.backend.encode_batch(texts, add_special_tokens=False)]

    def batches(self, lessons: list[Lesson], story_texts: list[str], parts: int) -> list[Batch]:
        """Lessons and stories in `parts` batches of like lengths, so that little is padding."""
        rows = [self._row(lesson) for lesson in lessons] + [self._story(text) for text in story_texts]
        rows.sort(key=lambda row: len(row["ids"]))
        size = -(-len(rows) // parts)
        return [self._pad(rows[first : first + size]) for first in range(0, len(rows), size)]

    def _pad(self, rows: list[dict]) -> Batch:
        length = max(len(row["ids"]) for row in rows)

        def padded(name, fill):
            return torch.tensor([row[name] + [fill] * (length - len(row[name])) for row in rows])

        branch = padded("branch", -1)
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        mask = causal & ((branch[:, None, :] == 0) | (branch[:, None, :] == branch[:, :, None]))
        mask |= torch.eye(length, dtype=torch.bool)
        targets = [Target(kind, number, query, keys) for number, row in enumerate(rows) for kind, query, keys in row["targets"]]
        return Batch(padded("ids", self.pad), padded("positions", 0), mask, padded("labels", IGNORE), padded("weights", 0.0), targets)

    def _row(self, lesson: Lesson) -> dict:
        encoded = self.encode([text for text, _ in lesson.facts])
        ids = [self.begin] if lesson.plain else list(self.head)
        places = []  # of each fact: its tokens' first index, its encoding
        for encoding in encoded:
            places.append((len(ids), encoding))
            ids += [*encoding.ids, self.newline]
        row = {"ids": ids, "positions": list(range(len(ids))), "branch": [0] * len(ids), "labels": [IGNORE] * len(ids), "targets": []}
        row["weights"] = [0.0] * len(ids)
        for (first, encoding), (text, slots) in zip(places, lesson.facts, strict=True):
            row["targets"] += self._bind(first, encoding, text, slots)
        start = len(ids)
        for index, branch in enumerate(lesson.branches, 1):
            self._branch(row, start, index, branch, lesson, places)
        return row

    def _branch(self, row: dict, start: int, index: int, branch: Branch, lesson: Lesson, places: list) -> None:
        first = len(row["ids"])
        answer = self.encode([branch.answer])[0].ids
        if not branch.question:
            ids = [*answer, self.newline]
            labels = [*ids[1:], IGNORE]
            weights = [RESTATEMENT_WEIGHT] * len(ids)
        else:
            asked = f"Question: {branch.question}\nAnswer:" if lesson.plain else branch.question
            question = self.encode([asked])[0]
            lead = question.ids if lesson.plain else [*question.ids, self.end, self.assistant]
            stop = self.newline if lesson.plain else self.end
            ids = [*lead, *answer, stop]
            labels = [*[IGNORE] * (len(lead) - 1), *answer, stop, IGNORE]
            weights = [min(1.0, FULL_WEIGHT_TOKENS / len(answer))] * len(ids)
            asker = first + len(lead) - 1
            if branch.guided:
                row["targets"] += self._guide(first, asker, question, answer, branch, lesson, places)
        row["ids"] += ids
        row["labels"] += labels
        row["weights"] += weights
        row["positions"] += range(start, start + len(ids))
        row["branch"] += [index] * len(ids)

    def _bind(self, first: int, encoding: Encoded, text: str, slots: tuple[str, ...]) -> list[Aim]:
        spans = sorted(span for span in (_tokens(encoding, text, value) for value in slots) if span)
        targets = []
        for span, later in enumerate(spans[1:], 1):
            keys = tuple(first + token for earlier in spans[:span] for token in earlier)
            targets += [("bind", first + token, keys) for token in later]
        if spans:
            keys = tuple(first + token for span in spans for token in span)
            targets += [("bind", first + token, keys) for token in _closing(encoding, spans)]
        return targets

    def _guide(
        self, first: int, asker: int, question: Encoded, answer: list[int], branch: Branch, lesson: Lesson, places: list
    ) -> list[Aim]:
        content = tuple(first + i for i, token in enumerate(question.tokens) if token.strip("▁?.,").lower() not in STOP_WORDS | {""})
        targets = [("read", asker, content)] if content else []
        for kind, fact in zip(("locate", "hop"), reversed(branch.gold), strict=False):
            at, encoding = places[fact]
            text, slots = lesson.facts[fact]
            spans = [span for span in (_tokens(encoding, text, value) for value in slots) if span]
            if spans:
                targets.append((kind, asker, tuple(at + token for token in _closing(encoding, spans))))
        if branch.gold:
            at, encoding = places[branch.gold[-1]]
            span = _tokens(encoding, lesson.facts[branch.gold[-1]][0], branch.answer)
            if span and [encoding.ids[token] for token in span] == answer:
                targets += [("copy", asker + step, (at + token,)) for step, token in enumerate(span)]
        return targets

    def _story(self, text: str) -> dict:
        ids = [self.begin, *self.encode([text])[0].ids][:STORY_LENGTH]
        return {
            "ids": ids,
            "positions": list(range(len(ids))),
            "branch": [0] * len(ids),
            "labels": [*ids[1:], IGNORE],
            "weights": [STORY_WEIGHT] * len(ids),
            "targets": [],
        }


RESTATEMENT_WEIGHT, STORY_WEIGHT, STORY_LENGTH = 0.5, 0.3, 256
FULL_WEIGHT_TOKENS = 6  # the tokens of a longer answer (a spoken path) share the weight of this many


def _tokens(encoding: Encoded, text: str, value: str) -> tuple[int, ...]:
    """Indices of the tokens that stand for `value` in the encoded text; empty where it does not occur."""
    start = text.find(value)
    if start < 0:
        return ()
    end = start + len(value)
    return tuple(i for i, (a, b) in enumerate(encoding.offsets) if a < end and b > start and text[a:b].strip())


def _closing(encoding: Encoded, spans: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The tokens from the end of the last slot to the sentence's full stop: they have seen all that the sentence says."""
    last = max(span[-1] for span in spans)
    stop = next((i for i in range(last, len(encoding.tokens)) if encoding.tokens[i].endswith(".")), last)
    return tuple(range(last, stop + 1))


def curriculum(random: Random, progress: float) -> int:
    """How many facts a lesson has, by the share of the training that is done: up to 3, then 5, 8, 16."""
    limit = next(limit for until, limit in ((0.08, 3), (0.2, 5), (0.4, 8), (2.0, 16)) if progress < until)
    return random.randint(1, limit) if limit < 16 or random.random() < 0.6 else random.randint(4, 16)


BABI: Any = settings_for("babi", "base", {})
SPATIAL: Any = settings_for("spatial", "base", {})


def make_lesson(random: Random, progress: float) -> Lesson:
    """One lesson of the mixture."""
    n_facts = curriculum(random, progress)
    draw = random.random()
    if draw < 0.56:
        lesson = episodic_lesson(random, n_facts, motion=draw < 0.14)
    elif draw < 0.6:
        lesson = world_lesson(random, babi.make_world(random, BABI, Place("train", 0, random.randrange(400))))
    elif draw < 0.65:
        lesson = world_lesson(random, spatial.make_world(random, SPATIAL, Place("train", 0, random.randrange(10_000))))
    elif draw < 0.8:
        settings = multi.MultiSettings(n_facts=random.randint(14, 24), n_competitors=0, n_items=6, corrections=random.choice((0.35, 0.5)))
        lesson = trim(random, world_lesson(random, multi.make_world(random, settings, Place("train", 0, random.randrange(6)))), n_facts + 2)
    else:
        settings = semantic.SemanticSettings(
            n_facts=random.randint(20, 26), n_competitors=0, contradictions=random.randint(0, 3), near_misses=random.randint(0, 3)
        )
        lesson = trim(
            random, world_lesson(random, semantic.make_world(random, settings, Place("train", 0, random.randrange(30)))), n_facts + 3
        )
    if random.random() < 0.06:
        lesson = gold_only(random, lesson)
    return Lesson(lesson.facts, lesson.branches, plain=random.random() < 0.04)

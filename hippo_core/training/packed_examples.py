"""Packing: a lesson as one sequence. The prompt's beginning and the facts stand once, a branch for each question goes off from them.

A branch sees the beginning, the facts and itself, and its positions go on from the end of the facts: it is exactly the prompt of a test. In
a lesson of blocks a fact sees the beginning and itself; all facts start at the same position, and the branches after the longest (Ma et
al. 2024, arXiv 2409.15355, section 2; there blocks keep their place in the text).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.models.prompt import INSTRUCTION
from hippo_core.models.template import Template, chat
from hippo_core.training.lessons import Branch, Lesson

CPU = torch.device("cpu")
IGNORE = -100
RESTATEMENT_WEIGHT, STORY_WEIGHT, STORY_LENGTH = 0.5, 0.3, 256
FULL_WEIGHT_TOKENS = 6  # the tokens of a longer answer (a spoken path) share the weight of this many
MARK = "\u241e"  # stands for the user's words while the template is taken apart
STOP_WORDS = frozenset(  # of questions: all else is content
    (
        *("who", "what", "where", "when", "which", "person", "thing", "place", "time", "city", "name", "did", "do", "does", "was", "were"),
        *("is", "are", "has", "have", "the", "a", "an", "at", "in", "on", "to", "of", "that", "by", "tell", "me", "you", "recall"),
    )
)
Aim = tuple[str, int, tuple[int, ...]]  # kind, query position, key positions: a Target before its sequence has a number


@dataclass(frozen=True, slots=True)
class Target:
    """One attention target: in sequence `row`, the position `query` is to look at the positions `keys`."""

    kind: str
    row: int
    query: int
    keys: tuple[int, ...]


@dataclass
class PackedBatch:
    """A padded batch of B sequences of T tokens."""

    ids: Tensor  # [B, T]
    positions: Tensor  # [B, T]
    mask: Tensor  # who sees whom [B, T, T]
    labels: Tensor  # [B, T], IGNORE where there is no loss
    weights: Tensor  # [B, T]
    targets: list[Target]  # of guided attention
    skills: list[tuple[int, list[int], str]]  # of every answer: sequence, its labelled positions, skill


class PackedLesson(NamedTuple):
    """A tokenised text: ids, tokens, and each token's span of characters."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class LessonEncoder:
    """Turns lessons into batches with a given tokenizer and chat template; `guided` adds the targets of guided attention. LabError where
    the template ends an answer by no special token."""

    def __init__(self, tokenizer, template: Template, guided: bool = False, restate: bool = False, device: torch.device = CPU):
        self.backend = tokenizer.backend_tokenizer
        self.pad, self.guided, self.restate, self.device = tokenizer.pad_token_id, guided, restate, device
        turns = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": MARK}]
        head, lead = chat(tokenizer, template.text, turns).split(MARK)
        if not template.end_ids:
            raise LabError(
                f"the model's {template.origin} chat template ends an answer by no special token, as training needs; "
                "use a model whose template does, such as hippo-tiny or smollm2-135m-reader"
            )
        self.begin = self.ids(template.begin)
        self.head, self.lead = self.ids(head), self.ids(lead)
        self.stop = template.end_ids[0]
        self.newline = self.ids("a\na")[1]

    def ids(self, text: str) -> list[int]:
        """Token ids of one text alone."""
        return self.encode([text])[0].ids

    def encode(self, texts: list[str]) -> list[PackedLesson]:
        """Tokens of each text alone."""
        return [PackedLesson(e.ids, e.tokens, e.offsets) for e in self.backend.encode_batch(texts, add_special_tokens=False)]

    def batches(self, lessons: list[Lesson], story_texts: list[str], parts: int) -> list[PackedBatch]:
        """Lessons and stories in `parts` batches of like lengths, so that little is padding."""
        rows = [self.row(lesson) for lesson in lessons] + [self._story(text) for text in story_texts]
        rows.sort(key=lambda row: len(row.ids))
        size = -(-len(rows) // parts)
        return [self._pad(rows[first : first + size]) for first in range(0, len(rows), size)]

    def batch(self, lessons: list[Lesson]) -> PackedBatch:
        """Lessons in one batch, in their order."""
        return self._pad([self.row(lesson) for lesson in lessons])

    def row(self, lesson: Lesson) -> "PackedRow":
        """One lesson as a sequence."""
        row = PackedRow()
        row.add(self.begin if lesson.plain else self.head, 0, TRUNK)
        start = longest = len(row.ids)
        fact_tokens: list[tuple[int, PackedLesson]] = []  # of each fact: its first token's index, its encoding
        for number, encoding in enumerate(self.encode([text for text, _ in lesson.facts]) if lesson.facts else []):
            fact_tokens.append((len(row.ids), encoding))
            first = start if lesson.blocks else longest
            row.add([*encoding.ids, self.newline], first, -1 - number if lesson.blocks else TRUNK)
            longest = max(longest, first + len(encoding.ids) + 1)
        if self.guided:
            for (first, encoding), (text, slots) in zip(fact_tokens, lesson.facts, strict=True):
                row.targets += _bind(first, encoding, text, slots)
        for number, branch in enumerate(lesson.branches, 1):
            if branch.question:
                self._ask(row, longest, number, branch, lesson, fact_tokens)
            elif self.restate:
                ids = [*self.ids(branch.answer), self.newline]
                row.add(ids, longest, number, [*ids[1:], IGNORE], RESTATEMENT_WEIGHT)
        return row

    def _ask(self, row: "PackedRow", start: int, number: int, branch: Branch, lesson: Lesson, fact_tokens: list) -> None:
        if lesson.plain:
            question = self.encode([f"Question: {branch.question}\nAnswer:"])[0]
            lead, stop = question.ids, self.newline
            answer = self.ids(f"Answer: {branch.answer}")[len(self.ids("Answer:")) :]
        else:
            question = self.encode([branch.question])[0]
            lead, stop = [*question.ids, *self.lead], self.stop
            answer = self.ids(branch.answer)
        first = len(row.ids)
        asker = first + len(lead) - 1
        labels = [*[IGNORE] * (len(lead) - 1), *answer, stop, IGNORE]
        row.add([*lead, *answer, stop], start, number, labels, min(1.0, FULL_WEIGHT_TOKENS / len(answer)))
        row.skills.append((list(range(asker, asker + len(answer) + 1)), branch.skill))
        if self.guided and branch.guided:
            row.targets += _guide(first, asker, question, answer, branch, lesson, fact_tokens)

    def _story(self, text: str) -> "PackedRow":
        row = PackedRow()
        ids = [*self.begin, *self.ids(text)][:STORY_LENGTH]
        row.add(ids, 0, TRUNK, [*ids[1:], IGNORE], STORY_WEIGHT)
        return row

    def _pad(self, rows: list["PackedRow"]) -> PackedBatch:
        length = max(len(row.ids) for row in rows)

        def padded(name: str, fill: float) -> Tensor:
            return torch.tensor([getattr(row, name) + [fill] * (length - len(row.ids)) for row in rows], device=self.device)

        part = padded("part", TRUNK)  # what pads comes last: nothing before it sees it
        asker, seen = part[:, :, None], part[:, None, :]
        mask = torch.ones(length, length, dtype=torch.bool, device=self.device).tril() & (
            (seen == TRUNK) | (seen == asker) | ((seen < 0) & (asker > 0))
        )
        targets = [Target(kind, number, query, keys) for number, row in enumerate(rows) for kind, query, keys in row.targets]
        skills = [(number, positions, skill) for number, row in enumerate(rows) for positions, skill in row.skills]
        return PackedBatch(
            padded("ids", self.pad), padded("positions", 0), mask, padded("labels", IGNORE), padded("weights", 0.0), targets, skills
        )


TRUNK = 0  # the part of a sequence that all see: its beginning, and facts told as one text; blocks are negative, branches positive


class PackedRow:
    """A sequence under construction."""

    def __init__(self):
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.part: list[int] = []
        self.labels: list[int] = []
        self.weights: list[float] = []
        self.targets: list[Aim] = []
        self.skills: list[tuple[list[int], str]] = []

    def add(self, ids: list[int], position: int, part: int, labels: list[int] | None = None, weight: float = 0.0) -> None:
        """Append tokens of one part, the first at `position`."""
        self.ids += ids
        self.positions += range(position, position + len(ids))
        self.part += [part] * len(ids)
        self.labels += labels or [IGNORE] * len(ids)
        self.weights += [weight] * len(ids)


def _bind(first: int, encoding: PackedLesson, text: str, slots: tuple[str, ...]) -> list[Aim]:
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
    first: int, asker: int, question: PackedLesson, answer: list[int], branch: Branch, lesson: Lesson, fact_tokens: list
) -> list[Aim]:
    content = tuple(first + i for i, token in enumerate(question.tokens) if token.strip("▁Ġ?.,").lower() not in STOP_WORDS | {""})
    targets = [("read", asker, content)] if content else []
    for kind, fact in zip(("locate", "hop"), reversed(branch.gold), strict=False):
        at, encoding = fact_tokens[fact]
        text, slots = lesson.facts[fact]
        spans = [span for span in (_tokens(encoding, text, value) for value in slots) if span]
        if spans:
            targets.append((kind, asker, tuple(at + token for token in _closing(encoding, spans))))
    if branch.gold:
        at, encoding = fact_tokens[branch.gold[-1]]
        targets.append(("fact", asker, tuple(range(at, at + len(encoding.ids)))))
        span = _tokens(encoding, lesson.facts[branch.gold[-1]][0], branch.answer)
        if span and [encoding.ids[token] for token in span] == answer:
            targets += [("copy", asker + step, (at + token,)) for step, token in enumerate(span)]
    return targets


def _tokens(encoding: PackedLesson, text: str, value: str) -> tuple[int, ...]:
    """Indices of the tokens that stand for `value` in the encoded text; empty where it does not occur."""
    start = text.find(value)
    if start < 0:
        return ()
    end = start + len(value)
    return tuple(i for i, (a, b) in enumerate(encoding.offsets) if a < end and b > start and text[a:b].strip())


def _closing(encoding: PackedLesson, spans: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The tokens from the end of the last slot to the sentence's full stop: they have seen all that the sentence says."""
    last = max(span[-1] for span in spans)
    stop = next((i for i in range(last, len(encoding.tokens)) if encoding.tokens[i].endswith(".")), last)
    return tuple(range(last, stop + 1))

"""Paths through a world's statements: from a name of the question over statements that share a name, to what is asked for.

A path is worth how like its steps are what the question asks hop by hop (encoder.py), and has as many. Where others say otherwise of the
same matter, what holds is worked out, and the path goes on from there.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hippo_core.methods.relational.encoder import INTENTS, KINDS, PAIRS, ROLES, Marker, PathEncoder, Statement
from hippo_core.methods.relational.name_finder import NameFinder, Span, key_of, runs

SAME = 0.5  # how likely two statements are of one matter, at least, to decide together
SURENESS = {"plain": None, "update": None, "high": 0.9, "middle": 0.6, "low": 0.3, "guess": 0.1}  # of what is told so; None: plainly


class Step(NamedTuple):
    """That statement `number` leads from one name to another."""

    number: int
    start: str
    end: str


@dataclass(frozen=True)
class Path:
    """Steps from a name of the question, what they are worth, and the statements that say otherwise and do not hold (`lost`)."""

    steps: tuple[Step, ...]
    score: float
    lost: tuple[int, ...] = ()

    @property
    def end(self) -> str:
        return self.steps[-1].end

    @property
    def statements(self) -> tuple[int, ...]:
        return tuple(step.number for step in self.steps)


@dataclass
class ReadStatement:
    """A statement as it was read: its names, as they stand in it and by key; what leads from each to each other [M, M, W]; how it is told,
    and what each name is in it."""

    names: dict[str, str]
    leads: Tensor
    kind: str
    roles: dict[str, str]

    def lead(self, start: str, end: str) -> Tensor:
        """What leads from one of its names to another [W]."""
        of = list(self.names)
        return self.leads[of.index(start), of.index(end)]

    @property
    def teller(self) -> str:
        """The key of who tells it; "" where nobody does."""
        return next((name for name, role in self.roles.items() if role == "teller"), "")


@dataclass
class StatementReader:
    """A fitted encoder. Statements that were read are kept."""

    model: PathEncoder
    marker: Marker
    kept: dict[tuple[str, tuple[Span, ...]], ReadStatement] = field(default_factory=dict)

    @torch.inference_mode()
    def read(self, texts: Sequence[str], names: Sequence[Sequence[Span]], batch: int = 32) -> list[ReadStatement]:
        """These statements, of which each has these names."""
        keys = [(text, tuple(own)) for text, own in zip(texts, names, strict=True)]
        new = sorted({key for key in keys if key not in self.kept}, key=lambda key: len(key[0]))
        for first in range(0, len(new), batch):
            part = new[first : first + batch]
            marked = self.marker([(text, _numbered(own)) for text, own in part])
            for (text, own), said in zip(part, self.model.read(marked), strict=True):
                self.kept[text, own] = _as_read(text, own, said)
        return [self.kept[key] for key in keys]

    @torch.inference_mode()
    def ask(self, question: str, names: Sequence[Span], starts: Sequence[str]) -> list[tuple[Tensor, bool]]:
        """What a question asks from each of these of its names on: the vectors of its hops [H, W], and whether it asks of before."""
        marked = self.marker([(question, _numbered(names, start)) for start in starts])
        tags, intents = self.model.part(marked)
        parts = [one.hops(tag[: len(one.ids)].argmax(-1).tolist()) for one, tag in zip(marked, tags, strict=True)]
        vectors = self.model.scale * self.model.ask([hop for part in parts for hop in part])
        before = intents.argmax(-1) == INTENTS.index("before")
        return list(zip(vectors.split([len(part) for part in parts]), before.tolist(), strict=True))

    @torch.inference_mode()
    def same_matter(self, one: Tensor, others: Tensor, same: Sequence[bool]) -> np.ndarray:
        """How likely each of these is of the same matter as this one [N]."""
        logits = self.model.judge(one.expand_as(others), others, torch.tensor(same))
        return (1 - logits.softmax(-1)[:, PAIRS.index("unrelated")]).numpy()


def _numbered(names: Sequence[Span], first: str = "") -> list[tuple[int, int, int]]:
    order = {key: number for number, key in enumerate(dict.fromkeys([*[first] * bool(first), *(span.key for span in names)]), 1)}
    return [(span.start, span.end, order[span.key]) for span in names]


def _as_read(text: str, names: Sequence[Span], said: Statement) -> ReadStatement:
    words = {span.key: text[span.start : span.end] for span in reversed(names)}
    keys = list(dict.fromkeys(span.key for span in names))[: len(said.numbers)]  # further ones stand behind what was read
    roles = {key: ROLES[int(logits.argmax())] for key, logits in zip(keys, said.roles, strict=False)}
    return ReadStatement({key: words[key] for key in keys}, said.leads(), KINDS[int(said.kind.argmax())], roles)


class PathSearch:
    """Search over the statements of one world, in order of telling."""

    def __init__(self, reader: StatementReader, texts: Sequence[str], tellers: Sequence[str] = (), beam: int = 24) -> None:
        self.reader, self.beam = reader, beam
        self.finder = NameFinder.of(texts)
        self.read = reader.read(texts, [self.finder.find(text) for text in texts])
        self.tellers = [key_of(teller) for teller in tellers] or [""] * len(texts)
        self.at: dict[str, list[int]] = defaultdict(list)
        for number, one in enumerate(self.read):
            for name in one.names:
                self.at[name].append(number)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Each name as it was first written."""
        return {key: name for one in reversed(self.read) for key, name in one.names.items()}

    def named(self, question: str) -> list[Span]:
        """The names in a question: those of the world, and what else has a capital inside."""
        found = self.finder.find(question)
        taken = {place for span in found for place in range(span.start, span.end)}
        for run, opens in runs(question):
            if not opens and run[0].start not in taken:
                found.append(Span(run[0].start, run[-1].end, " ".join(token.word for token in run)))
        return sorted(found)

    def best(self, question: str, allowed: Set[int] | None = None, resolve: bool = True) -> list[Path]:
        """Paths, best first; none where the question names nothing that is known."""
        spans = self.named(question)
        starts = list(dict.fromkeys(span.key for span in spans if span.key in self.at))
        if not starts:
            return []
        asked = dict(zip(starts, self.reader.ask(question, spans, starts), strict=True))
        found = [path for start, (hops, _) in asked.items() for path in self._walk(start, hops, allowed) if len(path.steps) == len(hops)]
        found.sort(key=lambda path: -path.score / len(path.steps))
        if not (found and resolve):
            return found
        hops, before = asked[found[0].steps[0].start]
        return [self._resolved(found[0], hops, allowed, before), *found[1:]]

    def _walk(self, start: str, hops: Tensor, allowed: Set[int] | None, nodes: tuple[str, ...] = ()) -> list[Path]:
        """Paths of up to as many hops from a name; `nodes` were met before."""
        beam, found = [Path((), 0.0)], list[Path]()
        for asked in hops:
            wider = []
            for path in beam:
                here = path.end if path.steps else start
                seen = {*nodes, start, *(step.end for step in path.steps)}
                for number in self.at[here]:
                    if number in path.statements or (allowed is not None and number not in allowed):
                        continue
                    one = self.read[number]
                    likes = one.leads[list(one.names).index(here)] @ asked
                    wider += [
                        Path((*path.steps, Step(number, here, end)), path.score + float(like))
                        for end, like in zip(one.names, likes, strict=True)
                        if end not in seen
                    ]
            beam = sorted(wider, key=lambda path: -path.score)[: self.beam]
            found += beam
        return found

    def _resolved(self, path: Path, hops: Tensor, allowed: Set[int] | None, before: bool) -> Path:
        """The path over what holds: where a step is contested, over the statement that decides, and on from its end."""
        steps, lost = list(path.steps), list[int]()
        for place in range(len(steps)):
            claims = self.claims(steps[place], allowed)
            last = place == len(steps) - 1
            chosen = decided(claims, before and last)
            if chosen is None or chosen.step.end == steps[place].end:
                lost += [claim.step.number for claim in claims if chosen and claim.step.end != chosen.step.end]
                steps[place] = chosen.step if chosen else steps[place]
                continue
            lost += [claim.step.number for claim in claims if claim.step.end != chosen.step.end]
            steps[place] = chosen.step
            left = len(steps) - place - 1
            if left:
                nodes = tuple(step.start for step in steps[: place + 1])
                on = [
                    one for one in self._walk(chosen.step.end, hops[place + 1 : place + 1 + left], allowed, nodes) if len(one.steps) == left
                ]
                if not on:
                    return replace(path, steps=tuple(steps[: place + 1]), lost=tuple(lost))
                steps[place + 1 :] = max(on, key=lambda one: one.score).steps
        return replace(path, steps=tuple(steps), lost=tuple(lost))

    def claims(self, step: Step, allowed: Set[int] | None = None) -> list["Claim"]:
        """All that is told of the same matter as a step, of the same name, in order of telling."""
        own = self.read[step.number].lead(step.start, step.end)
        others = [
            Step(number, step.start, end)
            for number in self.at[step.start]
            if allowed is None or number in allowed
            for end, role in self.read[number].roles.items()
            if end != step.start and role != "teller"
        ]
        if not others:
            return []
        leads = torch.stack([self.read[other.number].lead(other.start, other.end) for other in others])
        alike = self.reader.same_matter(own, leads, [other.end == step.end for other in others])
        found: dict[int, tuple[float, Claim]] = {}
        for other, likely in zip(others, alike, strict=True):
            one = self.read[other.number]
            if other == step or likely >= SAME:
                claim = Claim(other, one.kind, one.teller or self.tellers[other.number], one.roles.get(other.end) == "old")
                if other.number not in found or likely > found[other.number][0]:
                    found[other.number] = (likely, claim)
        return [found[number][1] for number in sorted(found)]


class Claim(NamedTuple):
    """What a statement says of a matter, how it is told and by whom; `old`: that it says so of what is no longer so, or never was."""

    step: Step
    kind: str
    teller: str
    old: bool


def decided(claims: Sequence[Claim], before: bool = False) -> Claim | None:
    """Of what was told of one matter, in order, what holds now, or (`before`) held before that; None where nothing was asserted.

    What is told plainly, or has become so, begins a new time. Of the rest the surest count, each teller by the last word, then the most
    tellers, then the latest (semantic/conflict.py).
    """
    told = [claim for claim in claims if claim.kind in SURENESS and not claim.old]
    times = [winner for winner in (_winner(told[: place + 1]) for place in range(len(told))) if winner]
    periods = [one for place, one in enumerate(times) if place == 0 or one.step.end != times[place - 1].step.end]
    if not before:
        return periods[-1] if periods else None
    former = [claim for claim in claims if claim.kind == "former" or (claim.old and claim.kind == "update")]
    if former:
        return former[-1]
    return periods[-2] if len(periods) > 1 else None


def _winner(told: Sequence[Claim]) -> Claim | None:
    begins = max((place for place, claim in enumerate(told) if claim.kind == "update"), default=0)
    left = list(enumerate(told))[begins:]
    left = [one for one in left if one[1].kind != "guess"] or left
    last = {claim.teller: (place, claim) for place, claim in left}
    sure = {place: SURENESS[claim.kind] if SURENESS[claim.kind] is not None else 0.9 for place, claim in last.values()}
    most = max(sure.values(), default=0.0)
    sides: dict[str, list[int]] = defaultdict(list)
    for place, claim in last.values():
        if sure[place] == most:
            sides[claim.step.end].append(place)
    return told[max(max(sides.values(), key=lambda side: (len(side), max(side))))] if sides else None

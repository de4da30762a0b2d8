"""Paths through a world's statements: from a name of the question over statements that share a name, to what is asked for.

A path is worth how likely each of its steps is what the question asks there (encoder.py). Where others say otherwise of the same matter,
what holds is worked out, and the path goes on from there.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hippo_core.methods.relational.confidence import MATTER, VERSIONS, same_matter
from hippo_core.methods.relational.edge import Attestation
from hippo_core.methods.relational.mentions import NameIndex
from hippo_core.methods.relational.name_finder import NameSpan, TaggedNames, key_of
from hippo_core.methods.relational.statement_reader import SURENESS, ChainQuery, StatementReader

SAME = 0.5  # how likely two statements are of one matter, at least, to decide together
FAR = 10.0  # statements that are less likely than this, as a logarithm, count as this
PLAIN = 0.9  # how sure what nobody qualifies is
GUESS = 0.1
NEAR = 3.0  # leads of paths beyond this count as this


class PathStep(NamedTuple):
    """That statement `number` leads from one name to another."""

    number: int
    start: str
    end: str


@dataclass(frozen=True)
class ScoredPath:
    """Steps from a name of the question; `likely`: of each the logarithm of how likely it is what is asked there. `lost`: the statements
    that say otherwise and do not hold. `evidence`: what speaks for the best path, and against it."""

    steps: tuple[PathStep, ...]
    likely: tuple[float, ...]
    score: float
    lost: tuple[int, ...] = ()
    evidence: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def end(self) -> str:
        return self.steps[-1].end

    @property
    def statements(self) -> tuple[int, ...]:
        return tuple(step.number for step in self.steps)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.steps[0].start, *(step.end for step in self.steps))


class PathClaim(NamedTuple):
    """What a statement says of a matter: how surely, whether as what has become so, by whom; `old`: as what is no longer so, or never
    was."""

    step: PathStep
    sure: float
    replaces: bool
    teller: str
    old: bool = False


class PathSearch:
    """Search over the statements of one world, in order of telling.

    Args:
        tellings: of each statement who has told it, when and how surely; what its text says of the first one counts instead.
        hops: statements of a path, at most.
        beam: paths that are followed further at each hop.
        resolve: whether a contested statement is replaced by the one that holds.
    """

    def __init__(
        self,
        reader: StatementReader,
        texts: Sequence[str],
        tellings: Sequence[Sequence[Attestation]] = (),
        beam: int = 24,
        resolve: bool = True,
        hops: int = 3,
    ) -> None:
        self.reader, self.beam, self.resolve, self.hops = reader, beam, resolve, hops
        tagged = reader.names(texts)
        self.finder = TaggedNames.of(texts, tagged)
        self.read = reader.read(texts, [self.finder.find(text, own) for text, own in zip(texts, tagged, strict=True)])
        self.tellings = list(tellings) or [()] * len(texts)
        self.out: dict[str, list[tuple[int, int, str]]] = defaultdict(list)  # of each name: the pair, the statement and the other name
        numbers, self._of = [], [number for number, one in enumerate(self.read) for _ in range(len(one.names) ** 2)]
        for number, one in enumerate(self.read):
            for start in one.names:
                for end in one.names:
                    if end != start:
                        self.out[start].append((len(numbers), number, end))
                    numbers.append(number if end != start else -1)
        self.numbers = np.array(numbers, int)  # of each pair of names its statement, -1 for a name and itself

    @cached_property
    def _pairs(self) -> tuple[Tensor, Tensor]:
        """What leads from each name to each other one [P, W], and how likely it stands [P]."""
        return torch.cat([one.leads.flatten(0, 1) for one in self.read]), torch.cat([one.standing.flatten() for one in self.read])

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Each name as it was first written."""
        return {key: name for one in reversed(self.read) for key, name in one.names.items()}

    @cached_property
    def _known(self) -> NameIndex:
        known = NameIndex()
        for key in self.names:
            known.add(key)
        return known

    def against(self, path: ScoredPath) -> list[list[int]]:
        """Of each statement of a path those that say otherwise and do not hold."""
        return [[number for number in path.lost if step.start in self.read[number].names] for step in path.steps]

    def named(self, question: str) -> list[NameSpan]:
        """The names in a question: those of the world, by a part of them or nearly so too, and others with a capital."""
        [tagged] = self.reader.names([question])
        found = self.finder.find(question, tagged)
        taken = {place for span in found for place in range(span.start, span.end)}
        for start, end in tagged:
            if taken.isdisjoint(range(start, end)):
                key = key_of(question[start:end])
                known = self._known.nearest(key)
                if known or not question[start:end].islower():  # else a word of what is asked
                    found.append(NameSpan(start, end, known or key))
        return sorted(found)

    def best(self, question: str, allowed: Set[int] | None = None) -> list[ScoredPath]:
        """Paths, best first; none where the question names nothing that is known."""
        found = self.likeliest(question, allowed)
        if not found:
            return []
        best, asked, likely = found[0]
        rivals = [path.score for path, *_ in found if path.end != best.end]
        evidence = {
            "mean": sum(best.likely) / len(best.likely),
            "least": min(best.likely),
            "lead": min(NEAR, best.score - max(rivals)) if rivals else NEAR,
            "hops": asked.likely,
        }
        if self.resolve:
            best = self._resolved(best, likely, allowed, asked.before)
        return [replace(best, evidence=evidence), *(path for path, *_ in found[1:])]

    def likeliest(self, question: str, allowed: Set[int] | None = None) -> list[tuple[ScoredPath, ChainQuery, np.ndarray]]:
        """Paths, best first, whatever contests them, each with how its question was cut and how likely each pair of names is what each hop
        asks [H, P], as a logarithm."""
        found: list[tuple[ScoredPath, ChainQuery, np.ndarray]] = []
        for asked, likely in self.asked(question, allowed):
            paths = self._walk(asked.start, likely)
            found += [(replace(path, score=path.score + asked.likely), asked, likely) for path in paths]
        return sorted(found, key=lambda one: -one[0].score)

    def asked(self, question: str, allowed: Set[int] | None = None) -> list[tuple[ChainQuery, np.ndarray]]:
        """The ways to cut a question, each with how likely each pair of names is what each hop asks [H, P], as a logarithm."""
        spans = self.named(question)
        starts = [key for key in dict.fromkeys(span.key for span in spans) if key in self.out]
        if not starts:
            return []
        table, standing = self._pairs
        usable = self.numbers >= 0 if allowed is None else np.isin(self.numbers, list(allowed))
        found = []
        for asked in self.reader.ask(question, spans, starts):
            if len(asked.hops) > self.hops:
                continue
            alike = self.reader.model.alike(asked.words, [one.words for one in self.read])
            likes = asked.hops @ table.T + alike[:, self._of] + standing
            likely = np.where(usable, likes.double().numpy(), -np.inf)
            found.append((asked, likely - np.logaddexp.reduce(likely, axis=1, keepdims=True)))
        return found

    def step_of(self, asked: Sequence[tuple[ChainQuery, np.ndarray]], number: int) -> tuple[PathStep, np.ndarray, bool] | None:
        """What a statement says of a name in the question that is likeliest asked first, how likely each pair of names is [P], and whether
        the question asks of what was so before; None where it says nothing of these names. `asked`: the ways to cut the question."""
        steps = [
            (float(likely[0][pair]) + one.likely, PathStep(number, one.start, end), likely[0], one.before)
            for one, likely in asked
            for pair, other, end in self.out[one.start]
            if other == number
        ]
        return max(steps, key=lambda one: one[0])[1:] if steps else None

    def standing(self, asked: Sequence[tuple[ChainQuery, np.ndarray]], number: int) -> tuple[int, tuple[int, ...]]:
        """Of the matter that a statement tells of a name in the question (`step_of`): the statement that holds, a later one unless the
        question asks of what was so before, and those that do not hold; the statement alone where nothing replaced it."""
        found = self.step_of(asked, number)
        if found is None:
            return number, ()
        step, likely, before = found
        claims = self.claims(step, likely, use=VERSIONS)
        chosen = decided(claims, before)
        if chosen is None or (chosen.step.number < number and not before):
            return number, ()
        return chosen.step.number, tuple(dict.fromkeys(claim.step.number for claim in claims if claim.step.end != chosen.step.end))

    def _walk(self, start: str, likely: np.ndarray, nodes: tuple[str, ...] = ()) -> list[ScoredPath]:
        """Paths of as many hops from a name; likely [H, P]; `nodes` were met before."""
        beam = [ScoredPath((), (), 0.0)]
        for hop in likely:
            wider = []
            for path in beam:
                here = path.end if path.steps else start
                seen = {*nodes, start, *(step.end for step in path.steps)}
                for pair, number, end in self.out[here]:
                    if end not in seen and number not in path.statements and np.isfinite(hop[pair]):
                        worth = float(hop[pair])
                        wider.append(ScoredPath((*path.steps, PathStep(number, here, end)), (*path.likely, worth), path.score + worth))
            beam = sorted(wider, key=lambda path: -path.score)[: self.beam]
        return beam

    def _resolved(self, path: ScoredPath, likely: np.ndarray, allowed: Set[int] | None, before: bool) -> ScoredPath:
        """The path over what holds: where a step is contested, over the statement that decides, and on from its end."""
        steps, lost = list(path.steps), list[int]()
        for place in range(len(steps)):
            claims = self.claims(steps[place], likely[place], allowed)
            chosen = decided(claims, before and place == len(steps) - 1)
            if chosen is None:
                continue
            lost += [claim.step.number for claim in claims if claim.step.end != chosen.step.end]
            moved = chosen.step.end != steps[place].end
            steps[place] = chosen.step
            if moved and place + 1 < len(steps):
                on = self._walk(chosen.step.end, likely[place + 1 :], tuple(step.start for step in steps[: place + 1]))
                steps[place + 1 :] = on[0].steps if on else ()
                if not on:
                    break
        return replace(path, steps=tuple(steps), lost=tuple(dict.fromkeys(lost)))

    def claims(self, step: PathStep, likely: np.ndarray, allowed: Set[int] | None = None, use: str = MATTER) -> list[PathClaim]:
        """All that is told of the same matter as a step, of the same name, in order of telling. `likely`: how likely each pair of names is
        what is asked there [P]; `use`: what for (confidence.py)."""
        same = same_matter(use)
        said = [step, *(other for other, evidence in self.rivals(step, likely, allowed) if same.of(evidence) >= SAME)]
        claims = [(telling.time, claim) for one in said for telling, claim in self._tellings_of(one)]
        return [claim for _, claim in sorted(claims, key=lambda one: (one[0], one[1].step.number))]

    def rivals(self, step: PathStep, likely: np.ndarray, allowed: Set[int] | None = None) -> list[tuple[PathStep, Mapping[str, float]]]:
        """Of each other statement of a step's name the likeliest step, and what speaks for its being of the same matter.

        `worse`: how much less likely it is what is asked; `alike`: the cosine of what both lead to; `met`, `meets`: how well the words of
        the one are met in the other's; `update`: that it tells what has become so; `names`: that it names where the step ends.
        """
        pairs = {(number, end): pair for pair, number, end in self.out[step.start]}
        own, one = pairs[step.number, step.end], self.read[step.number]
        best: dict[int, tuple[float, str]] = {}
        for (number, end), pair in pairs.items():
            if number != step.number and (allowed is None or number in allowed) and self.read[number].roles[end] != "teller":
                best[number] = max(best.get(number, (-np.inf, "")), (float(likely[pair]), end))
        if not best:
            return []
        words = [self.read[number].words for number in best]
        met = (self.reader.model.alike([one.words], words)[0] / self.reader.model.fine).tolist()
        meets = (self.reader.model.alike(words, [one.words])[:, 0] / self.reader.model.fine).tolist()
        table, _ = self._pairs
        alike = (table[[pairs[number, end] for number, (_, end) in best.items()]] @ table[own]).tolist()
        return [
            (
                PathStep(number, step.start, end),
                {
                    "worse": max(-FAR, min(FAR, float(likely[own]) - worth)),
                    "alike": alike[row],
                    "met": met[row],
                    "meets": meets[row],
                    "update": float(self.read[number].kind == "update"),
                    "names": float(step.end in self.read[number].names and step.end != end),
                },
            )
            for row, (number, (worth, end)) in enumerate(best.items())
        ]

    def _tellings_of(self, step: PathStep) -> list[tuple[Attestation, PathClaim]]:
        """Each telling of a statement as a claim: the first by its text, others by what the store says of them."""
        one, tellings = self.read[step.number], self.tellings[step.number] or (Attestation("", step.number),)
        sure = SURENESS.get(one.kind)
        old = one.kind not in SURENESS or one.roles[step.end] == "old"
        own = PathClaim(step, PLAIN if sure is None else sure, one.kind == "update", one.teller or key_of(tellings[0].teller), old)
        again = [
            PathClaim(step, PLAIN if telling.confidence is None else telling.confidence, telling.replaces, key_of(telling.teller), old)
            for telling in tellings[1:]
        ]
        return list(zip(tellings, [own, *again], strict=True))


def decided(claims: Sequence[PathClaim], before: bool = False) -> PathClaim | None:
    """Of what was told of one matter, in order, what holds now, or (`before`) held before that; None where nothing was asserted. It is
    settled as in graph.py (`deciding`)."""
    told = [claim for claim in claims if not claim.old]
    times = [_winner(told[: place + 1]) for place in range(len(told))]
    periods = [one for place, one in enumerate(times) if place == 0 or one.step.end != times[place - 1].step.end]
    if not before:
        return periods[-1] if periods else None
    former = [claim for claim in claims if claim.old]
    if former:
        return former[-1]
    return periods[-2] if len(periods) > 1 else None


def _winner(told: Sequence[PathClaim]) -> PathClaim:
    begins = max((place for place, claim in enumerate(told) if claim.replaces), default=0)
    left = list(enumerate(told))[begins:]
    left = [one for one in left if one[1].sure > GUESS] or left
    last = {claim.teller: (place, claim) for place, claim in left}
    most = max(claim.sure for _, claim in last.values())
    tails: dict[str, list[int]] = defaultdict(list)
    for place, claim in last.values():
        if claim.sure == most:
            tails[claim.step.end].append(place)
    return told[max(max(tails.values(), key=lambda places: (len(places), max(places))))]

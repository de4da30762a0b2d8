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

from hippo_core.methods.relational.confidence import same_matter
from hippo_core.methods.relational.edge import Attestation
from hippo_core.methods.relational.graph import ConflictClaim, resolve_conflict
from hippo_core.methods.relational.mentions import NameIndex
from hippo_core.methods.relational.name_finder import NameSpan, TaggedNames, key_of
from hippo_core.methods.relational.statement_reader import CONFIDENCE_BY_KIND, ChainQuery, StatementReader

SAME = 0.5  # how likely two statements are of one matter, at least, to decide together
FAR = 10.0  # statements that are less likely than this, as a logarithm, count as this
NEAR = 3.0  # leads of paths beyond this count as this


class PathStep(NamedTuple):
    """That statement `number` leads from one name to another."""

    number: int
    start: str
    end: str


@dataclass(frozen=True)
class ScoredPath:
    """Steps from a name of the question."""

    steps: tuple[PathStep, ...]
    likely: tuple[float, ...]  # of each the logarithm of how likely it is what is asked there
    score: float
    lost: tuple[int, ...] = ()  # the statements that say otherwise and do not hold
    evidence: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)  # for the best path, and against it

    @property
    def end(self) -> str:
        return self.steps[-1].end

    @property
    def statements(self) -> tuple[int, ...]:
        return tuple(step.number for step in self.steps)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.steps[0].start, *(step.end for step in self.steps))


class PathSearch:
    """Search over the statements of one world, in order of telling.

    Args:
        attestations: of each statement; of the first one, what its text says counts instead.
        hops: statements of a path, at most.
        beam: paths that are followed further at each hop.
        resolve: whether a contested statement is replaced by the one that holds.
    """

    def __init__(
        self,
        reader: StatementReader,
        texts: Sequence[str],
        attestations: Sequence[Sequence[Attestation]] = (),
        beam: int = 24,
        resolve: bool = True,
        hops: int = 3,
    ) -> None:
        self.reader, self.beam, self.resolve, self.hops = reader, beam, resolve, hops
        tagged = reader.names(texts)
        self.finder = TaggedNames.of(texts, tagged)
        self.read = reader.read(texts, [self.finder.find(text, own) for text, own in zip(texts, tagged, strict=True)])
        self.attestations = list(attestations) or [()] * len(texts)
        self.out: dict[str, list[tuple[int, int, str]]] = defaultdict(list)  # of each name: the pair, the statement and the other name
        numbers, self._of = [], [number for number, statement in enumerate(self.read) for _ in range(len(statement.names) ** 2)]
        for number, statement in enumerate(self.read):
            for start in statement.names:
                for end in statement.names:
                    if end != start:
                        self.out[start].append((len(numbers), number, end))
                    numbers.append(number if end != start else -1)
        self.numbers = np.array(numbers, int)  # of each pair of names its statement, -1 for a name and itself

    @cached_property
    def _pairs(self) -> tuple[Tensor, Tensor]:
        """What leads from each name to each other one [P, W], and how likely it stands [P]."""
        return torch.cat([statement.leads.flatten(0, 1) for statement in self.read]), torch.cat(
            [statement.standing.flatten() for statement in self.read]
        )

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Each name as it was first written."""
        return {key: name for statement in reversed(self.read) for key, name in statement.names.items()}

    @cached_property
    def _known(self) -> NameIndex:
        known = NameIndex()
        for key in self.names:
            known.add(key)
        return known

    def against(self, path: ScoredPath) -> list[list[int]]:
        """Of each statement of a path those that it overruled."""
        return [[number for number in path.lost if step.start in self.read[number].names] for step in path.steps]

    def named(self, question: str) -> list[NameSpan]:
        """The names in a question: those of the world, by a part of them or nearly so too, and others with a capital."""
        [tagged] = self.reader.names([question])
        names = self.finder.find(question, tagged)
        used = {index for span in names for index in range(span.start, span.end)}
        for start, end in tagged:
            if used.isdisjoint(range(start, end)):
                key = key_of(question[start:end])
                known = self._known.nearest(key)
                if known or not question[start:end].islower():  # else a word of what is asked
                    names.append(NameSpan(start, end, known or key))
        return sorted(names)

    def best(self, question: str, allowed: Set[int] | None = None) -> list[ScoredPath]:
        """Paths, best first; none where the question names nothing that is known."""
        ranked = self.likeliest(question, allowed)
        if not ranked:
            return []
        best, asked, likely = ranked[0]
        competing = [path.score for path, *_ in ranked if path.end != best.end]
        evidence = {
            "mean": sum(best.likely) / len(best.likely),
            "least": min(best.likely),
            "lead": min(NEAR, best.score - max(competing)) if competing else NEAR,
            "hops": asked.likely,
        }
        if self.resolve:
            best = self._resolved(best, likely, allowed, asked.before)
        return [replace(best, evidence=evidence), *(path for path, *_ in ranked[1:])]

    def likeliest(self, question: str, allowed: Set[int] | None = None) -> list[tuple[ScoredPath, ChainQuery, np.ndarray]]:
        """Paths, best first, before conflicts are resolved, each with its cut of the question and the log-likelihood that a pair of names
        is what a hop asks [H, P]."""
        candidates: list[tuple[ScoredPath, ChainQuery, np.ndarray]] = []
        for asked, likely in self.asked(question, allowed):
            paths = self._walk(asked.start, likely)
            candidates += [(replace(path, score=path.score + asked.likely), asked, likely) for path in paths]
        return sorted(candidates, key=lambda candidate: -candidate[0].score)

    def asked(self, question: str, allowed: Set[int] | None = None) -> list[tuple[ChainQuery, np.ndarray]]:
        """The possible cuts of a question, each with the log-likelihood that a pair of names is what a hop asks [H, P]."""
        spans = self.named(question)
        starts = [key for key in dict.fromkeys(span.key for span in spans) if key in self.out]
        if not starts:
            return []
        table, standing = self._pairs
        usable = self.numbers >= 0 if allowed is None else np.isin(self.numbers, list(allowed))
        queries = []
        for asked in self.reader.ask(question, spans, starts):
            if len(asked.hops) > self.hops:
                continue
            similarities = self.reader.model.similarity(asked.words, [statement.words for statement in self.read])
            likes = asked.hops @ table.T + similarities[:, self._of] + standing
            likely = np.where(usable, likes.double().numpy(), -np.inf)
            queries.append((asked, likely - np.logaddexp.reduce(likely, axis=1, keepdims=True)))
        return queries

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
        for index in range(len(steps)):
            claims = self.claims(steps[index], likely[index], allowed)
            chosen = claim_in_force(claims, before and index == len(steps) - 1)
            if chosen is None:
                continue
            lost += [claim.number for claim in claims if claim.tail != chosen.tail]
            moved = chosen.tail != steps[index].end
            steps[index] = PathStep(chosen.number, steps[index].start, chosen.tail)
            if moved and index + 1 < len(steps):
                on = self._walk(chosen.tail, likely[index + 1 :], tuple(step.start for step in steps[: index + 1]))
                steps[index + 1 :] = on[0].steps if on else ()
                if not on:
                    break
        return replace(path, steps=tuple(steps), lost=tuple(dict.fromkeys(lost)))

    def claims(self, step: PathStep, likely: np.ndarray, allowed: Set[int] | None = None) -> list[ConflictClaim]:
        """All claims of a name about the same matter as a step, in order of telling. `likely`: of each pair of names, that it is what is
        asked there [P]."""
        same = same_matter()
        steps = [step, *(other for other, evidence in self.competing_steps(step, likely, allowed) if same.of(evidence) >= SAME)]
        claims = [claim for same_matter_step in steps for claim in self._claims_of(same_matter_step)]
        return sorted(claims, key=lambda claim: (claim.attestation.time, claim.number))

    def competing_steps(
        self, step: PathStep, likely: np.ndarray, allowed: Set[int] | None = None
    ) -> list[tuple[PathStep, Mapping[str, float]]]:
        """Of each other statement of a step's name the likeliest step, and what speaks for its being of the same matter.

        `worse`: how much less likely it is what is asked; `alike`: the cosine of what both lead to; `met`, `meets`: how well the words of
        the one are met in the other's; `update`: that it tells what has become so; `names`: that it names where the step ends.
        """
        pairs = {(number, end): pair for pair, number, end in self.out[step.start]}
        own, own_statement = pairs[step.number, step.end], self.read[step.number]
        best: dict[int, tuple[float, str]] = {}
        for (number, end), pair in pairs.items():
            if number != step.number and (allowed is None or number in allowed) and self.read[number].roles[end] != "teller":
                best[number] = max(best.get(number, (-np.inf, "")), (float(likely[pair]), end))
        if not best:
            return []
        words = [self.read[number].words for number in best]
        step_coverage = (self.reader.model.similarity([own_statement.words], words)[0] / self.reader.model.fine).tolist()
        other_coverage = (self.reader.model.similarity(words, [own_statement.words])[:, 0] / self.reader.model.fine).tolist()
        table, _ = self._pairs
        similarities = (table[[pairs[number, end] for number, (_, end) in best.items()]] @ table[own]).tolist()
        return [
            (
                PathStep(number, step.start, end),
                {
                    "worse": max(-FAR, min(FAR, float(likely[own]) - worth)),
                    "alike": similarities[row],
                    "met": step_coverage[row],
                    "meets": other_coverage[row],
                    "update": float(self.read[number].kind == "update"),
                    "names": float(step.end in self.read[number].names and step.end != end),
                },
            )
            for row, (number, (worth, end)) in enumerate(best.items())
        ]

    def _claims_of(self, step: PathStep) -> list[ConflictClaim]:
        """Each attestation of a statement as a claim: the first by its text, others as the store has them."""
        statement, (first, *others) = self.read[step.number], self.attestations[step.number] or (Attestation("", step.number),)
        old = statement.kind not in CONFIDENCE_BY_KIND or statement.roles[step.end] == "old"
        own = Attestation(
            statement.teller or key_of(first.teller), first.time, CONFIDENCE_BY_KIND.get(statement.kind), statement.kind == "update"
        )
        again = [replace(attestation, teller=key_of(attestation.teller)) for attestation in others]
        return [ConflictClaim(step.number, step.end, attestation, old) for attestation in (own, *again)]


def claim_in_force(claims: Sequence[ConflictClaim], before: bool = False) -> ConflictClaim | None:
    """Of claims about one matter, in order, the one that holds now, or (`before`) held before that; None where nothing was asserted."""
    current = [claim for claim in claims if not claim.old]
    times = [resolve_conflict(current[: index + 1]) for index in range(len(current))]
    periods = [winner for index, winner in enumerate(times) if index == 0 or winner.tail != times[index - 1].tail]
    if not before:
        return periods[-1] if periods else None
    former = [claim for claim in claims if claim.old]
    if former:
        return former[-1]
    return periods[-2] if len(periods) > 1 else None

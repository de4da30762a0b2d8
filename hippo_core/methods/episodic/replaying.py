"""Replay: a sleep between teaching and asking. Traces are drawn, cued with noisy versions of their own words, and recalled.

A trace that is recalled gains salience. Its key is mixed with the key of the noisy cue, so that the next such cue finds it. A trace that
is not recalled decays. Traces with the same words are merged into the latest one, which gets the evidence of all. Replay sees no question
and no answer, and trains nothing.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import torch

from hippo_core.methods.base import replay_row
from hippo_core.methods.episodic.components import Components
from hippo_core.methods.episodic.replay import Schedule, arrivals_of, draw, queue_of, recalled
from hippo_core.retrieval.channels import dense, rows_of
from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.payload import Payload
from hippo_core.store import TraceStore
from hippo_core.store.trace import Trace

SEED = 1337
RISE, DECAY, KEY_RATE = 0.1, 0.1, 0.25  # salience gained if recalled; share of it lost if not; the noisy cue's share of the new key


def replay_world(memory: Components, world: str, store: TraceStore) -> Iterator[dict[str, object]]:
    """Rehearse the traces of one world `replay.cycles` times, or not at all if replay is off. Yields a row per rehearsed trace and
    cycle."""
    replay = memory.settings.replay
    schedule: Schedule = {}
    for cycle in range(1, (replay.cycles if replay.enabled else 0) + 1):
        rows, schedule = ReplayCycle(memory, store, world, cycle).run(schedule)
        yield from rows


@dataclass(frozen=True)
class Rehearsal:
    """A trace, the noisy cue that it was given, whether it was ranked first, and the milliseconds that the recall took."""

    trace: Trace
    cue: str
    hit: bool
    ms: float


@dataclass(frozen=True)
class ReplayCycle:
    """One replay cycle of one world."""

    memory: Components
    store: TraceStore
    world: str
    cycle: int

    def run(self, schedule: Schedule) -> tuple[list[dict[str, object]], Schedule]:
        """Draw, cue and recall traces, then change the store in one batch that `rollback` can undo. Returns a row per rehearsed trace, and
        the schedule of when each is due again."""
        traces = self.store.traces(self.world)
        rehearsed = list(self._rehearsed(traces, self._drawn(traces, schedule)))
        hits = [rehearsal.trace.id for rehearsal in rehearsed if rehearsal.hit]
        misses = [rehearsal.trace.id for rehearsal in rehearsed if not rehearsal.hit]
        with self.store.maintenance("replay"):
            self.store.use(hits)
            self.store.raise_salience(hits, RISE)
            self.store.decay(DECAY, misses)
            self._update_keys([rehearsal for rehearsal in rehearsed if rehearsal.hit])
            merged = self._merge(traces)
        after = {trace.id: trace.salience for trace in self.store.traces(self.world)}
        rows = []
        for rehearsal in rehearsed:
            trace, salience = rehearsal.trace, after.get(rehearsal.trace.id, math.nan)
            rows.append(replay_row(self.cycle, trace, rehearsal.hit, rehearsal.ms, rehearsal.cue, salience, trace.id in merged))
        return rows, recalled(schedule, self.cycle, hits, misses)

    def _drawn(self, traces: Sequence[Trace], schedule: Schedule) -> list[Trace]:
        replay = self.memory.settings.replay
        ids = draw(queue_of(arrivals_of(traces)), replay, self.cycle, len(traces), SEED, schedule)
        by_id = {trace.id: trace for trace in traces}
        return [by_id[identifier] for identifier in ids]

    def _rehearsed(self, traces: Sequence[Trace], drawn: Sequence[Trace]) -> Iterator[Rehearsal]:
        recaller = self.memory.recaller(traces)
        for trace in drawn:
            random = Random(f"replay/{SEED}/{self.world}/{trace.source}/{self.cycle}")
            cue, begin = corrupt(trace.text, self.memory.settings.replay.noise_level, random), time.perf_counter()
            ranking = recaller.recall(cue).traces
            yield Rehearsal(trace, cue, bool(ranking) and ranking[0].id == trace.id, (time.perf_counter() - begin) * 1e3)

    def _update_keys(self, hits: Sequence[Rehearsal]) -> None:
        """Store new keys: a weighted mean of the old key and the noisy cue's key, cut again to its strongest units."""
        if not hits:
            return
        encoder = self.memory.encoder
        new = encoder.model.activations([rehearsal.cue for rehearsal in hits], encoder.expansion)
        self.store.update_payloads(
            {rehearsal.trace.id: self._mixed(rehearsal.trace.payload, cue) for rehearsal, cue in zip(hits, new, strict=True)}
        )

    def _mixed(self, payload: Payload, cue: torch.Tensor) -> Payload:
        """A payload whose key nearest to the cue's activations [expansion] is mixed with them."""
        old = dense(rows_of(payload.keys))
        nearest = int((old @ cue).argmax())
        mixed = torch.nn.functional.normalize((1 - KEY_RATE) * old[nearest] + KEY_RATE * cue, dim=0)
        [key] = self.memory.encoder.keys_of(mixed[None])
        return replace(payload, keys=(*payload.keys[:nearest], key, *payload.keys[nearest + 1 :]))

    def _merge(self, traces: Sequence[Trace]) -> set[int]:
        """Merge traces with the same words: the last one stays and gets the evidence of all. Returns the ids of those deleted."""
        by_words: dict[tuple[str, ...], list[Trace]] = {}
        for trace in traces:
            by_words.setdefault(tuple(words(trace.text) or [trace.text]), []).append(trace)
        return self.store.merge(by_words.values())


def corrupt(text: str, level: float, random: Random) -> str:
    """Corrupt each word of a text with probability `level`: half of these words are misspelt, the other half and those of up to two letters
    dropped. The last word stays if all others were dropped."""
    words = text.split()
    words_left: list[str] = []
    for number, word in enumerate(words):
        if random.random() >= level:
            words_left.append(word)
        elif len(word) > 2 and random.random() < 0.5:
            words_left.append(misspelt(word, random))
        elif not words_left and number == len(words) - 1:
            words_left.append(word)
    return " ".join(words_left)


def misspelt(word: str, random: Random) -> str:
    """The word with one letter removed, or with two neighbouring letters swapped."""
    index = random.randrange(len(word) - 1)
    swapped = word[:index] + word[index + 1] + word[index] + word[index + 2 :]
    return swapped if random.random() < 0.5 else word[:index] + word[index + 1 :]

"""Replay: a sleep between teaching and asking. Traces are drawn, cued with noisy versions of their own words, and recalled.

What is recalled rises in salience and its key takes in the noisy cue's, so that the next such cue meets it; what is not recalled decays.
Two traces in the same words become one, the later, with the evidence of both. Nothing of any question or answer is seen, and nothing is
trained.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pandas as pd
import torch

from hippo_core.methods.episodic.memory import Episodic
from hippo_core.methods.episodic.replay import Drawing, Queue, Schedule, arrivals_of, draw, push, recalled
from hippo_core.methods.episodic.replay.noise import corrupt
from hippo_core.methods.episodic.settings import MemoryPreset
from hippo_core.models.language_model import LanguageModel
from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.trace_index import dense, rows_of
from hippo_core.store import TraceStore
from hippo_core.store.trace import Trace

SEED = 1337
RISE, DECAY, TAKEN_IN = 0.1, 0.1, 0.25  # of salience, recalled or not; a noisy cue's part of the new key
COLUMNS = ["cycle", "world", "trace_id", "cue", "recalled", "salience_before", "salience_after", "merged", "ms"]


def replay(lm: LanguageModel, preset: MemoryPreset, source_dir: Path, session_id: str, store_dir: Path) -> pd.DataFrame:
    """A copy of the store below `source_dir`, rehearsed `replay.cycles` times, below `store_dir`; one row a rehearsed trace and cycle."""
    memory, rows = Episodic(lm, preset), []
    cycles = preset.replay.cycles if preset.replay.enabled else 0
    with (
        TraceStore.open(source_dir, session_id, memory.identity(), read_only=True) as source,
        source.copy(store_dir) as store,
    ):
        for world in store.worlds():
            schedule: Schedule = {}
            for cycle in range(1, cycles + 1):
                night = Night(memory, store, world, cycle)
                found, schedule = night.sleep(schedule)
                rows += found
            memory.forget()
    return pd.DataFrame(rows, columns=COLUMNS)


@dataclass(frozen=True)
class Rehearsal:
    """A trace, the noisy cue that it was given, and whether it came first."""

    trace: Trace
    cue: str
    hit: bool
    ms: float


@dataclass(frozen=True)
class Night:
    """One cycle of one world."""

    memory: Episodic
    store: TraceStore
    world: str
    cycle: int

    def sleep(self, schedule: Schedule) -> tuple[list[dict[str, object]], Schedule]:
        """Draw, cue, recall, and change the store, all in one batch that `rollback` can undo; the rows, and when each is due again."""
        traces = self.store.traces(self.world)
        rehearsed = list(self._rehearsed(traces, self._drawn(traces, schedule)))
        hits = [one.trace.id for one in rehearsed if one.hit]
        misses = [one.trace.id for one in rehearsed if not one.hit]
        with self.store.maintenance("replay"):
            self.store.use(hits)
            self.store.raise_salience(hits, RISE)
            self.store.decay(DECAY, misses)
            self._take_in([one for one in rehearsed if one.hit])
            merged = self._merge(traces)
        after = {trace.id: trace.salience for trace in self.store.traces(self.world)}
        rows = [self._row(one, after, merged) for one in rehearsed]
        return rows, recalled(schedule, self.cycle, hits, misses)

    def _drawn(self, traces: Sequence[Trace], schedule: Schedule) -> list[Trace]:
        told = self.memory.preset.replay
        drawing = Drawing(told.policy, told.rate, told.noise_level, told.max_items)
        ids = draw(push(Queue(), arrivals_of(traces)), drawing, self.cycle, len(traces), SEED, schedule)
        by_id = {trace.id: trace for trace in traces}
        return [by_id[identifier] for identifier in ids]

    def _rehearsed(self, traces: Sequence[Trace], drawn: Sequence[Trace]) -> Iterator[Rehearsal]:
        recaller = self.memory.recaller(traces)
        for trace in drawn:
            random = Random(f"replay/{SEED}/{self.world}/{trace.source}/{self.cycle}")
            cue, begin = corrupt(trace.text, self.memory.preset.replay.noise_level, random), time.perf_counter()
            found = recaller.recall(cue).traces
            yield Rehearsal(trace, cue, bool(found) and found[0].id == trace.id, (time.perf_counter() - begin) * 1e3)

    def _take_in(self, hits: Sequence[Rehearsal]) -> None:
        """New keys: the old one and that of the noisy cue in proportion, and again only the strongest units."""
        if not hits:
            return
        coder = self.memory.coder
        old = dense(rows_of([one.trace.key for one in hits]))
        new = coder.encoder.activations([one.cue for one in hits], coder.expansion)
        mixed = torch.nn.functional.normalize((1 - TAKEN_IN) * old + TAKEN_IN * new, dim=-1)
        self.store.rekey({one.trace.id: key for one, key in zip(hits, coder.keys_of(mixed), strict=True)})

    def _merge(self, traces: Sequence[Trace]) -> set[int]:
        """Of traces in the same words the last stays, with the evidence of all; the ids of those that went."""
        alike: dict[tuple[str, ...], list[Trace]] = {}
        for trace in traces:
            alike.setdefault(tuple(words(trace.text)), []).append(trace)
        gone = {}
        for *earlier, last in alike.values():
            gone |= {trace.id: last.id for trace in earlier}
            if earlier:
                self.store.aggregate(last.id, sum(trace.evidence for trace in earlier))
        self.store.delete(list(gone))
        return set(gone)

    def _row(self, one: Rehearsal, after: dict[int, float], merged: set[int]) -> dict[str, object]:
        return {
            "cycle": self.cycle,
            "world": self.world,
            "trace_id": one.trace.id,
            "cue": one.cue,
            "recalled": float(one.hit),
            "salience_before": one.trace.salience,
            "salience_after": after.get(one.trace.id, float("nan")),
            "merged": float(one.trace.id in merged),
            "ms": one.ms,
        }

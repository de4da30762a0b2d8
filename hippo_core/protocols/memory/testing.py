"""Test: every item is asked with what the memory recalls for it from the store, and nothing else; one row an item.

What is injected is what the store holds of a trace. Of the suite's files the question is asked, and the answer is scored by them.

The controls change what was recalled after recall has run, so that they differ in nothing else: `empty` injects the same traces with none
of them seen, `shuffled` what another world's traces say in their place, `oracle` the gold traces, `random` others of the same world.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pandas as pd

from hippo_core.conditions import Choice, Regime
from hippo_core.files import LabError
from hippo_core.memory.codes.rows import Rows
from hippo_core.memory.episodic import Episodic
from hippo_core.memory.inject.types import Injected
from hippo_core.memory.inject.types import Question as Asked
from hippo_core.memory.recall.ranking import Recall
from hippo_core.memory.settings import MemoryPreset
from hippo_core.memory.store import TraceStore
from hippo_core.memory.trace import Trace
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import fit
from hippo_core.protocols.evaluate import COLUMNS, Question, check_no_leak, row_of, texts_of
from hippo_core.protocols.memory.altering import answering_slot
from hippo_core.results.scores import normalise
from hippo_core.suites.types import Fact, Item, Suite, World

OF_STORE = ("store_written", "replayed", "replay_contribution", "replay_cycles_missing")
OWN = ("follows_store", "requests", "candidates", "k_used", "store_size", "recall_ms", "completion_ms", "encode_ms", "scores", *OF_STORE)
LISTED = 5  # recalled traces whose scores a row keeps


@dataclass(frozen=True)
class Remembered:
    """An item with what was recalled for it, the traces that are injected, and all of its world."""

    question: Question
    recall: Recall
    traces: tuple[Trace, ...]
    stored: Sequence[Trace]


def test(
    lm: LanguageModel,
    suite: Suite,
    worlds: Sequence[World],
    preset: MemoryPreset,
    regime: Regime,
    store_dir: Path,
    session_id: str,
    batch_size: int = 32,
) -> pd.DataFrame:
    """Ask every item of the worlds, in their order. The store is opened read-only and does not change.

    `latency_ms` is that of the answer, what is injected included; `retrieval_ms` that of recall and completion. `encode_ms`, the time in
    which traces that were met for the first time were run to keys and values, is apart where these are kept; so are these tokens from
    `computed_tokens`. `store_written` is 1 where the item's world has traces, `replayed` how many of them a replay recalled,
    `replay_contribution` the share of those among what is injected, `replay_cycles_missing` the share of the cycles that did not run.
    `follows_store` is 1 where the answer is what the store's gold trace says, true or not; NaN where the store has no such trace.
    """
    memory = Episodic(lm, preset)
    if preset.traces == "episodic":
        memory.warm_up()
    rows: list[dict[str, object]] = []
    with TraceStore.open(store_dir, session_id, memory.identity(), read_only=True) as store:
        stored = {world.id: store.traces(world.id) for world in worlds} if preset.traces == "episodic" else {}
        missing = cycles_missing(store, preset) if regime == "after_sleep" else math.nan
    for together in groups(worlds, batch_size):
        keys = cue_keys(memory, [item.question for number in together for item in worlds[number].items])
        told = [
            one for number in together for one in remembered(memory, suite, worlds[number], keys, *pools(preset, worlds, stored, number))
        ]
        encode_ms = memory.make_ready([trace for one in told for trace in one.traces]) / max(1, len(told))
        answered = zip(told, answers(memory, suite, told, batch_size), strict=True)
        rows += [row(memory, suite, *pair, encode_ms) | {"replay_cycles_missing": missing} for pair in answered]
        memory.forget()
    return pd.DataFrame([{"idx": number, **one} for number, one in enumerate(rows)], columns=[*COLUMNS, *OWN])


def cycles_missing(store: TraceStore, preset: MemoryPreset) -> float:
    """The share of the cycles of a sleep that the store's history does not have; NaN where none were to run."""
    due = preset.replay.cycles * len(store.worlds()) if preset.replay.enabled else 0
    return 1 - store.history().count("replay") / due if due else math.nan


def groups(worlds: Sequence[World], batch_size: int) -> Iterator[list[int]]:
    """Numbers of neighbouring worlds whose items fill a batch, or more where one world does."""
    together: list[int] = []
    items = 0
    for number, world in enumerate(worlds):
        together.append(number)
        items += len(world.items)
        if items >= batch_size or number + 1 == len(worlds):
            yield together
            together, items = [], 0


def pools(preset: MemoryPreset, worlds: Sequence[World], stored: Mapping[str, list[Trace]], number: int) -> tuple[list[Trace], list[Trace]]:
    """A world's own traces, and those whose contents take their place where the preset shuffles."""
    own = stored.get(worlds[number].id, [])
    return own, stored.get(worlds[number - 1].id, []) if preset.control == "shuffled" else []


def cue_keys(memory: Episodic, questions: Sequence[str]) -> Iterator[tuple[Rows | None, float]]:
    """The key of each question, made together, and the milliseconds that its share took; none where the key is no channel."""
    if "key" not in memory.preset.episodic.code.channels or memory.preset.traces != "episodic":
        yield from ((None, 0.0) for _ in questions)
        return
    begin = time.perf_counter()
    rows = memory.coder.rows(questions)
    each = (time.perf_counter() - begin) * 1e3 / max(1, len(questions))
    yield from ((rows.one(number), each) for number in range(len(questions)))


def remembered(
    memory: Episodic,
    suite: Suite,
    world: World,
    keys: Iterator[tuple[Rows | None, float]],
    own: Sequence[Trace],
    others: Sequence[Trace],
) -> Iterator[Remembered]:
    """The items of a world with what is recalled for each; `keys` are those of all cues to come, `others` what stands in the place of what
    the traces say."""
    recaller, texts = memory.recaller(own), texts_of(world)
    for item in world.items:
        key, key_ms = next(keys)
        recall = recaller.recall(item.question, set(item.taught), key)
        recall = replace(recall, recall_ms=recall.recall_ms + key_ms)
        traces = chosen(memory.preset, item, recall, own, others)
        shown = tuple(as_fact(trace) for trace in sorted(traces, key=lambda trace: (trace.time, trace.id)))
        ranking = tuple(trace.source for trace in recall.traces)
        choice = Choice(shown, ranking, recall.recall_ms + recall.completion_ms, recall.computed_tokens)
        bare = fit(memory.lm, [], item.question, memory.preset.decoding, suite.answer_budget)
        question = Question(world, item, choice, bare)
        check_no_leak(question, texts)
        yield Remembered(question, recall, traces, own)


def chosen(preset: MemoryPreset, item: Item, recall: Recall, own: Sequence[Trace], others: Sequence[Trace]) -> tuple[Trace, ...]:
    """The traces that are injected for an item."""
    best = recall.traces[: preset.k]
    if preset.control == "oracle":
        return tuple(trace for trace in own if trace.source in item.gold_facts)
    if preset.control == "random":
        wrong = [trace for trace in own if trace.source not in item.gold_facts]
        return tuple(Random(f"random_traces/{item.world}/{item.id}").sample(wrong, min(preset.k, len(wrong))))
    if preset.control == "shuffled":
        if not others or others[0].world == item.world:
            raise LabError("control shuffled needs a second world to take the contents from; give more questions (n)")
        return tuple(others[trace.id % len(others)] for trace in best)
    return best


def as_fact(trace: Trace) -> Fact:
    """What the store holds of a trace, as a fact."""
    return Fact(trace.source, trace.world, trace.text, dict(trace.slots), trace.time)


def follows_store(told: Remembered, prediction: str) -> float:
    """Whether an answer is what the gold trace of its question says in the store: 1 or 0, NaN where there is no such trace."""
    item = told.question.item
    slot = answering_slot(item, {fact.id: fact for fact in told.question.world.facts})
    stored = [trace.slots[slot] for trace in told.stored if slot is not None and trace.source in item.gold_facts and slot in trace.slots]
    return float(normalise(prediction) == normalise(stored[0])) if stored else math.nan


def answers(memory: Episodic, suite: Suite, told: Sequence[Remembered], batch_size: int) -> list[Injected]:
    """The model's answers, with the traces before it in the order of their telling."""
    asked = [Asked(one.question.item.question, tuple(fact.text for fact in one.question.choice.facts)) for one in told]
    return memory.injection.ask(asked, suite.answer_budget, batch_size, masked=memory.preset.control == "empty")


def row(memory: Episodic, suite: Suite, told: Remembered, answer: Injected, encode_ms: float) -> dict[str, object]:
    """The columns of `evaluate` and the memory's own; `encode_ms` is that of what is injected."""
    recall = told.recall
    scores = {trace.source: round(score, 4) for trace, score in zip(recall.traces[:LISTED], recall.scores, strict=False)}
    asked = memory.preset.traces == "episodic"
    return row_of(memory.lm, suite, told.question, answer) | {
        "shown": ";".join(fact.id for fact in told.question.choice.facts),
        "n_shown": len(told.question.choice.facts) - answer.dropped,
        "n_dropped": answer.dropped,
        "trace_tokens": answer.trace_tokens,
        "follows_store": follows_store(told, answer.text),
        "requests": float(asked),
        "candidates": len(recall.traces),
        "k_used": len(told.traces),
        "store_size": len(told.stored),
        "recall_ms": recall.recall_ms if asked else math.nan,
        "completion_ms": recall.completion_ms if asked else math.nan,
        "encode_ms": recall.encode_ms + encode_ms,
        "scores": json.dumps(scores),
        "store_written": float(bool(told.stored)),
        "replayed": sum(trace.uses > 0 for trace in told.stored),
        "replay_contribution": sum(trace.uses > 0 for trace in told.traces) / len(told.traces) if told.traces else math.nan,
    }

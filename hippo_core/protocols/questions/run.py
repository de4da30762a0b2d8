"""Teach, replay, test: three steps of a memory, each in a process of its own; the store is all that passes between them."""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from hippo_core.evaluation.run import AnsweredItem, ask, row_of
from hippo_core.methods.base import Memory, Observation
from hippo_core.models.prompt import too_long
from hippo_core.protocols.questions.table import REPLAY, TEACH, TEST
from hippo_core.results.scores import score_item
from hippo_core.store import TraceStore
from hippo_core.store.trace import Decision, Trace
from hippo_core.suites.altering import with_counterfactual_answers
from hippo_core.suites.types import Fact, Regime, Suite, World

LISTED = 5  # recalled traces whose scores a row keeps


def teach(
    method: Memory, suite: Suite, worlds: Sequence[World], validation_worlds: Sequence[World], store_dir: Path, session_id: str
) -> pd.DataFrame:
    """Write the store of these worlds below `store_dir`; one row a told fact says what was decided about it (table TEACH; `ms` is its
    share of what its world took, `asked` the hidden label that judges a gate). What the method was calibrated to is noted in the store as
    `calibration`; facts that no prompt can hold are refused. LabError where it needs validation worlds and there are none."""
    calibration = None
    if method.writes:
        method.warm_up()
        calibration = method.calibrate(
            [Observation.of(fact) for fact in _parted(method, suite, world)[0].facts] for world in validation_worlds
        )
    rows: list[dict[str, object]] = []
    with TraceStore.create(store_dir, session_id, method.identity()) as store:
        if calibration is not None:
            store.note("calibration", calibration)
        for world in taught_worlds(method, suite, worlds):
            short, long = _parted(method, suite, world)
            rows += _taught(method, store, short, calibration) if method.writes else _untaught(short)
            rows += _untaught(long)
    return pd.DataFrame(rows, columns=[*TEACH.columns, *method.columns.get("teach", ())])


def taught_worlds(method: Memory, suite: Suite, worlds: Sequence[World]) -> Sequence[World]:
    """The worlds as the method is told them: where its settings say so with other contents, and the items that these answer otherwise."""
    return with_counterfactual_answers(suite, worlds) if method.alters_answers else worlds


def _parted(method: Memory, suite: Suite, world: World) -> tuple[World, World]:
    """The world with the facts that a prompt can hold, and the world with those that are too long for any."""
    long = set(too_long(method.lm, [fact.text for fact in world.facts], method.settings.decoding, suite.answer_budget))
    parts = ([fact for index, fact in enumerate(world.facts) if (index in long) == is_long] for is_long in (False, True))
    short, rest = (replace(world, facts=tuple(facts)) for facts in parts)
    return short, rest


def _taught(method: Memory, store: TraceStore, world: World, calibration: object) -> Iterator[dict[str, object]]:
    begin = time.perf_counter()
    decisions = method.teach([Observation.of(fact) for fact in world.facts], store, calibration)  # type: ignore[arg-type]
    each = (time.perf_counter() - begin) * 1e3 / max(1, len(world.facts))
    method.forget()
    stored = {trace.id for trace in store.traces(world.id)}
    for fact, decision in zip(world.facts, decisions, strict=True):
        evicted = decision.trace_id is not None and decision.trace_id not in stored
        yield _teach_row(fact, decision) | {"evicted": evicted, "ms": each} | method.own_columns("teach", decision.columns)


def _untaught(world: World) -> Iterator[dict[str, object]]:
    for fact in world.facts:
        yield _teach_row(fact, Decision(Observation.of(fact).statement, math.nan, {}, {}, "refuse")) | {"evicted": False, "ms": math.nan}


def _teach_row(fact: Fact, decision: Decision) -> dict[str, object]:
    return {
        "fact_id": fact.id,
        "world": fact.world,
        "time": fact.time,
        "S": decision.S if decision.contributions else math.nan,
        **{name: decision.raw.get(name, math.nan) for name in ("surprise", "novelty")},
        "reward": float(fact.reward),
        "pin": float(fact.pin),
        "contributions": json.dumps({name: round(value, 6) for name, value in decision.contributions.items()}),
        "action": decision.action,
        "trace_id": math.nan if decision.trace_id is None else float(decision.trace_id),
        "asked": float(fact.asked),
    }


def persist(method: Memory, store_dir: Path, session_id: str, folder: Path) -> None:
    """Copy the store below `store_dir` to `folder`, whole or not at all; LabError where the session is there already."""
    with TraceStore.open(store_dir, session_id, method.identity(), read_only=True) as store:
        store.copy(folder).close()


def replay(method: Memory, source: Path, store_dir: Path) -> pd.DataFrame:
    """A copy of the store that is the file `source`, rehearsed, below `store_dir`; one row a rehearsed trace and cycle. Nothing of any
    question or answer is seen. What it did is noted in the store as `replay`."""
    rows: list[dict[str, object]] = []
    with _reading(method, source) as taught, taught.copy(store_dir) as store:
        for world in store.worlds():
            rows += method.replay(world, store)
            method.forget()
        store.note("replay", {"items": len(rows), "cycles": len({row["cycle"] for row in rows})})
    return pd.DataFrame(rows, columns=[*REPLAY.columns, *method.columns.get("replay", ())])


def _reading(method: Memory, file: Path) -> TraceStore:
    return TraceStore.open(file, file.parent.name, method.identity(), read_only=True)


def test(
    method: Memory, suite: Suite, worlds: Sequence[World], regime: Regime, stores: Mapping[str, Path], batch_size: int = 32
) -> pd.DataFrame:
    """Ask every item of the worlds, in their order, with what the method recalls from its stores, which are opened read-only, and nothing
    else. `stores`: the file of each of its parts, "" of a memory that has none. `encode_ms`, the time in which traces that were met for the
    first time were run to keys and values, is apart from `latency_ms` where these are kept, as are these tokens from `computed_tokens`.
    `store_written`: the item's world has traces; `replayed`: each store that is replayed was; `replay_contribution`: the share of rehearsed
    traces among what is shown; `replay_cycles_missing`: the share of the cycles that did not run; `follows_store`: the score of the answer
    by what the store was told, true or not (NaN where the method has not opened the gold facts as they were told)."""
    method.warm_up()
    stored, noted = read(method, worlds, stores)
    slept = _sleep(method, noted) if regime == "after_sleep" else {"replayed": 0.0, "replay_cycles_missing": math.nan}
    taught = {world.id: world for world in taught_worlds(method, suite, worlds)}
    asked = ask(suite, worlds, method, regime, stored, batch_size)
    rows = [
        row_of(method.lm, suite, answered)
        | memory_columns(suite, answered, taught[answered.world.id])
        | slept
        | method.own_columns("test", answered.retrieved.columns)
        for answered in asked
    ]
    columns = [*TEST.columns, *suite.measures, *method.columns.get("test", ())]
    return pd.DataFrame([{"idx": number, **answered} for number, answered in enumerate(rows)], columns=columns)


def read(
    method: Memory, worlds: Sequence[World], stores: Mapping[str, Path]
) -> tuple[dict[str, list[Trace]], dict[str, Mapping[str, int]]]:
    """What the stores hold of these worlds, by world, and what a replay did to each store."""
    stored: dict[str, list[Trace]] = {world.id: [] for world in worlds}
    noted: dict[str, Mapping[str, int]] = {}
    for name, part in method.parts.items():
        with _reading(part, stores[name]) as store:
            for world in worlds:
                stored[world.id] += [replace(trace, memory=name) for trace in store.traces(world.id)]
            noted[name] = store.meta.get("replay", {"items": 0, "cycles": 0})
    return stored, noted


def _sleep(method: Memory, noted: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """What became of a replay, of all parts that have one. `noted`: what it did to each store."""
    due = {name: part.replay_cycles for name, part in method.parts.items() if "replay" in part.steps}
    rehearsed = [noted[name]["items"] > 0 for name in due]
    cycles, missing = sum(due.values()), sum(max(0, count - noted[name]["cycles"]) for name, count in due.items())
    return {"replayed": float(min(rehearsed, default=False)), "replay_cycles_missing": missing / cycles if cycles else math.nan}


def memory_columns(suite: Suite, answered: AnsweredItem, taught: World) -> dict[str, object]:
    """What rows of a memory have besides those of every method. `taught`: the item's world as the method was taught it."""
    retrieved = answered.retrieved
    searched = not math.isnan(retrieved.recall_ms)
    scored = zip((retrieved.ranking or ())[:LISTED], retrieved.scores, strict=False)
    return {
        "follows_store": follows_store(suite, answered, taught),
        "requests": float(searched),
        "candidates": len(retrieved.ranking or ()),
        "k_used": len(retrieved.shown),
        "store_size": len(answered.passages),
        "recall_ms": retrieved.recall_ms,
        "completion_ms": retrieved.completion_ms if searched else math.nan,
        "encode_ms": retrieved.encode_ms + answered.once.ms,
        "scores": json.dumps({trace.source: round(score, 4) for trace, score in scored}),
        "store_written": float(bool(answered.passages)),
        "replay_contribution": sum(trace.uses > 0 for trace in retrieved.shown) / len(retrieved.shown) if retrieved.shown else math.nan,
    }


def follows_store(suite: Suite, answered: AnsweredItem, taught: World) -> float:
    """The score of an answer by the world as it was `taught`, as by the true one where nothing is altered. NaN where that world does not
    answer the question, or not otherwise than the true one, and where the method has not opened its gold facts in these words."""
    item = next((asked for asked in taught.items if asked.id == answered.item.id), None)
    if item is None or not item.gold_facts:
        return math.nan
    texts = {fact.id: fact.text for fact in taught.facts}
    opened = {item.retold.get(trace.source, trace.source) for trace in answered.opened if trace.text == texts.get(trace.source)}
    return score_item(suite, taught, item, answered.answer.text)["score"] if opened >= set(item.gold_facts) else math.nan

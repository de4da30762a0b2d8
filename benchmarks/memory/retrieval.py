"""Retrieval alone: a method made from the name of its preset, opened on a world's facts, and asked all questions of the world."""

import tempfile
import time
from pathlib import Path

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Memory, Method, Query, Retrieve
from hippo_core.methods.presets import load_preset
from hippo_core.protocols.base.assignments import with_settings
from hippo_core.protocols.questions import run
from hippo_core.results.scores import score_ranking
from hippo_core.store import TraceStore
from hippo_core.suites.types import Suite, World


def method_of(lm, name: str) -> tuple[str, Method]:
    """The method of `preset` or `preset[key=value;other=["a", "b"]]`."""
    path, overrides = with_settings(name)
    preset = load_preset(path if "/" in path else f"baselines/{path}", overrides)
    return name, preset.method(lm, preset.settings)


def opened(method: Method, suite: Suite, world: World, folder: Path | None = None) -> Retrieve:
    """What retrieves from a world's passages, all of them told; a memory is taught first, a store below `place`."""
    questions = [item.question for item in world.items]
    if not isinstance(method, Memory):
        return method.open(passages_of(world), questions)
    folder = folder or Path(tempfile.mkdtemp())
    run.teach(method, suite, [world], [], folder, "natural")
    method.warm_up()
    with TraceStore.open(folder, "natural", method.identity(), read_only=True) as store:
        return method.open(store.traces(world.id), questions)


def measure(method: Method, suite: Suite, world: World) -> tuple[list[dict[str, float]], float, float]:
    """A row a question, in the world's order (what its ranking is worth, `retrieval_ms`, `computed_tokens`); then the seconds in which
    passages were read once and the first question was asked, and those of all other questions."""
    begin = time.perf_counter()
    retrieve = opened(method, suite, world)
    first = retrieve(Query(world.items[0].question, world.items[0].taught))  # indexes are built with the first
    made = time.perf_counter() - begin
    rows = []
    for number, item in enumerate(world.items):
        retrieved = first if number == 0 else retrieve(Query(item.question, item.taught))
        cost = {"retrieval_ms": retrieved.retrieval_ms, "computed_tokens": retrieved.computed_tokens}
        rows.append(score_ranking(retrieved.ranking, item) | cost)
    return rows, made, time.perf_counter() - begin - made

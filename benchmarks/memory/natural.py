"""How well passages that people wrote are found, by every baseline and by a memory: all questions of a suite, retrieval alone.

    HIPPO_DATA=../texts python benchmarks/memory/natural.py [--model smollm2-135m-reader] [--suite squad/every ...] [--n 500] [--preset ...]

No model is trained on any of these texts. Columns: the share of gold passages among the 1, 2, 5 and 20 best, questions with all of theirs
among the five best, questions with the answer in one of the 1 and 5 best, milliseconds and computed tokens a question; the time in
which passages were read once is apart. Percentages; intervals stand in the reports of grids.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from hippo_core.experiments.answer.run import passages_of
from hippo_core.experiments.memory import run
from hippo_core.methods.base import Memory, Method, Query, Retrieve
from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.rankings import score_ranking
from hippo_core.store import TraceStore
from hippo_core.suites import get_suite
from hippo_core.suites.datasets.build import worlds
from hippo_core.suites.types import Suite, World

SUITES = ("squad/every", "hotpotqa/default", "twowiki/default", "notes/together")
SHOWN = ("recall_1", "recall_2", "recall_5", "recall_20", "all_gold_5", "answer_recall_1", "answer_recall_5")
PRESETS = (
    *("rag_bm25", "rag_grams", "rag_dense[encoder=minilm]", "rag_hybrid[encoder=minilm]", "rag_sum", "rag_fitted"),
    *("rag_head", "rag_head_fitted"),
    *("rag_fitted_rerank", "rag_rerank[encoder=minilm]"),
)


def method_of(lm, name: str) -> tuple[str, Method]:
    """The method of `preset` or `preset[key=value]`."""
    path, _, override = name.rstrip("]").partition("[")
    overrides = dict(one.split("=") for one in override.split(",")) if override else {}
    preset = load_preset(path if "/" in path else f"baselines/{path}", overrides)
    return name, preset.method(lm, preset.settings)


def opened(method: Method, suite: Suite, world: World) -> Retrieve:
    """What retrieves from a world's passages, all of them told; a memory is taught first."""
    questions = [item.question for item in world.items]
    if not isinstance(method, Memory):
        return method.open(passages_of(world), questions)
    place = Path(tempfile.mkdtemp())
    run.teach(method, suite, [world], [], place, "natural")
    method.warm_up()
    with TraceStore.open(place, "natural", method.identity(), read_only=True) as store:
        return method.open(store.traces(world.id), questions)


def measure(method: Method, suite: Suite, world: World) -> list[float]:
    """The row of a method."""
    begin = time.perf_counter()
    retrieve = opened(method, suite, world)
    first = retrieve(Query(world.items[0].question, world.items[0].taught))  # indexes are built with the first
    made = time.perf_counter() - begin
    rows = []
    for number, item in enumerate(world.items):
        found = first if number == 0 else retrieve(Query(item.question, item.taught))
        scores = score_ranking(found.ranking, item)
        rows.append([*(scores[name] for name in SHOWN), found.retrieval_ms, found.computed_tokens])
    return [*np.nanmean(np.array(rows, float), axis=0).tolist(), made, time.perf_counter() - begin - made]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m-reader")
    parser.add_argument("--suite", nargs="+", default=SUITES)
    parser.add_argument("--preset", nargs="+", default=PRESETS)
    parser.add_argument("--n", type=int, default=None)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    lm = load(load_spec(options.model), threads=options.threads)
    for place in options.suite:
        suite, _, profile = place.partition("/")
        [world] = worlds(suite, profile or "default", options.n, 1337, "test", lm.spec.context_limit)
        print(
            f"\n{place}: {len(world.facts):,} passages, {len(world.items):,} questions, {options.model}, {options.threads} threads",
            flush=True,
        )
        print("| method | R@1 | R@2 | R@5 | R@20 | all gold @5 | answer @1 | @5 | ms | tokens | s to read once | s of all questions |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for name in options.preset:
            label, method = method_of(lm, name)
            *shares, ms, tokens, made, took = measure(method, get_suite(suite), world)
            cells = " | ".join("–" if np.isnan(share) else f"{100 * share:.1f}" for share in shares)
            print(f"| {label} | {cells} | {ms:.1f} | {tokens:.0f} | {made:.0f} | {took:.0f} |", flush=True)
            method.forget()


if __name__ == "__main__":
    main()

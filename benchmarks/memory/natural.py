"""How well passages that people wrote are found, by every baseline and by a memory: all questions of a suite, retrieval alone.

    HIPPO_DATA=../texts python benchmarks/memory/natural.py [--model smollm2-135m-reader] [--suite squad/every ...] [--n 500] [--preset ...]

No model is trained on any of these texts. Columns: the share of gold passages among the 1, 2, 5 and 20 best, questions with all of theirs
among the five best, questions with the answer in one of the 1 and 5 best, milliseconds and computed tokens a question; the time in
which passages were read once is apart. Percentages; intervals stand in the reports of grids.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from retrieval import measure, method_of

from hippo_core.methods.base import Method
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Suite, World

SUITES = ("squad/every", "squad/default", "hotpotqa/default", "twowiki/default", "notes/together", "notes/default")
SHOWN = ("recall_1", "recall_2", "recall_5", "recall_20", "all_gold_5", "answer_recall_1", "answer_recall_5")
PRESETS = (
    *("rag_bm25", "rag_grams", "rag_dense[encoder=minilm]", "rag_hybrid[encoder=minilm]", "rag_sum", "rag_fitted"),
    *("rag_head", "rag_head_fitted", "rag_sum_head", "memory/hei_nw"),
    *("rag_fitted_rerank", "rag_rerank[encoder=minilm]"),
)


def row_of(method: Method, suite: Suite, asked: Sequence[World]) -> list[float]:
    """The row of a method: means over the questions of all worlds."""
    measures = [measure(method, suite, world) for world in asked]
    columns = [[row[name] for name in (*SHOWN, "retrieval_ms", "computed_tokens")] for rows, _, _ in measures for row in rows]
    return [*np.nanmean(np.array(columns, float), axis=0).tolist(), *(sum(seconds) for seconds in list(zip(*measures, strict=True))[1:])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m-reader")
    parser.add_argument("--suite", nargs="+", default=SUITES)
    parser.add_argument("--preset", nargs="+", default=PRESETS)
    parser.add_argument("--n", type=int, default=None)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    lm = load(load_spec(options.model), threads=options.threads)
    for entry in options.suite:
        suite, _, profile = entry.partition("/")
        asked = list(worlds(suite, profile or "default", options.n, 1337, "test", lm.spec.context_limit))
        passages, questions = sum(len(world.facts) for world in asked), sum(len(world.items) for world in asked)
        print(f"\n{entry}: {len(asked)} worlds, {passages:,} passages, {questions:,} questions, {options.model}, {options.threads} threads")
        print("| method | R@1 | R@2 | R@5 | R@20 | all gold @5 | answer @1 | @5 | ms | tokens | s to read once | s of all questions |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for name in options.preset:
            label, method = method_of(lm, name)
            *shares, ms, tokens, made, took = row_of(method, get_suite(suite), asked)
            cells = " | ".join("–" if np.isnan(share) else f"{100 * share:.1f}" for share in shares)
            print(f"| {label} | {cells} | {ms:.1f} | {tokens:.0f} | {made:.0f} | {took:.0f} |", flush=True)
            method.forget()


if __name__ == "__main__":
    main()

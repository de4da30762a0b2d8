"""TEST DATA ONLY: invented row tables and criteria, so that statistics and verdicts can be tested without a model. Nothing was measured."""

import numpy as np
import pandas as pd

from hippo_core.results.criteria import Criteria, judge

RAGS = ("baselines/rag_bm25", "baselines/rag_dense", "baselines/rag_hybrid")
DENSE = [{"preset": preset, "encoder": encoder} for encoder in ("minilm", "own") for preset in RAGS[1:]]
HEAD = {"groups": {"best_core": ["baselines/core", "baselines/span_short"], "best_rag": [RAGS[0], *DENSE]}}
RUNGS = ("exact", "partial", "paraphrase", "noisy")
A_OVER_B = {"difference": {"a": "memory/hei_nw", "b": "baselines/core"}, "at_least": 0.1}


def table(values, per_world=5, **columns) -> pd.DataFrame:
    """A row table with one score an item."""
    n = len(values)
    ids, worlds = [f"i{i:04d}" for i in range(n)], [f"w{i // per_world:03d}" for i in range(n)]
    return pd.DataFrame({"item_id": ids, "world": worlds, "answer": [f"gold {i}" for i in range(n)], "score": values} | columns)


def random_pair(seed, n=100):
    random = np.random.default_rng(seed)
    return table(random.integers(0, 2, n).astype(float)), table((random.random(n) < 0.7).astype(float))


def cell(preset, rate, n=200, seed=1337, regime="delayed", per_world=5, **columns) -> pd.DataFrame:
    """The rows of one cell: item i is right where its fixed place in [0, 1) lies below `rate`, so that higher rates contain lower ones."""
    rank = np.random.default_rng(seed).permutation(n) / n
    given = {"run_id": "r", "suite": "episodic", "preset": preset, "model": "tiny", "regime": regime, "step": "test", "profile": "default",
             "n": n, "seed": seed, "stage": "test", "encoder": "own" if preset in RAGS[1:] else ""} | columns  # fmt: skip
    rows = pd.DataFrame({"item_id": [f"i{i}" for i in range(n)], "world": [f"w{i // per_world}" for i in range(n)]})
    rows = rows.assign(answer="gold " + rows["item_id"], rung=[RUNGS[i % 4] for i in range(n)], hops=1, kind="who", chance=0.1)
    rows = rows.assign(score=(rank < rate).astype(float), refusal=0.0, latency_ms=10 * rate + rank)
    return rows.assign(**{"cell": f"{preset}/{given['suite']}/{n}_{seed}/{regime}"} | given)


def criteria(**fields) -> Criteria:
    """One criterion."""
    criterion = {"id": "c", "question": "?", "text": "t", "family": "f", "about": "claim", "suites": ["episodic"]} | fields
    return Criteria.model_validate(HEAD | {"criteria": [criterion]})


def verdict(fields, *cells, **options):
    return judge(criteria(**fields), pd.concat(cells, ignore_index=True), **options)[0]

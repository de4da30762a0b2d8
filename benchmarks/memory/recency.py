"""Fit the recency rule of retrieval (hippo_core/retrieval/recency.py): how much an earlier version counts, for each rag that has the rule.

The worlds are those that the weights of a memory are fitted on (seed 2025, validation, no held-out words), in which versions matter or
not, and so is the fit: a conditional logit of the right fact among the best. What it prints stands in params/presets/baselines.

    python benchmarks/memory/recency.py [model]
"""

import sys

import numpy as np

from hippo_core.methods import WorldIndex, choose, load_preset
from hippo_core.methods.rag.rankers import dense_scores, hybrid_scores, ranked, standardised
from hippo_core.methods.rag.rerank import question_likelihoods
from hippo_core.methods.types import Request
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.bm25 import bm25_scores
from hippo_core.retrieval.fusion import Example, fit, fused
from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.recency import AMONG, superseded
from hippo_core.suites.datasets.build import cut, drawn_worlds, suite_settings
from hippo_core.training.recall_weights import SEED, TRAINED_WORDS

WORLDS = {
    "episodic_multi, 16": ("episodic_multi", {}, 120),
    "episodic_multi, 128": ("episodic_multi", {"n_facts": 128, "n_items": 10}, 60),
    "episodic, 32": ("episodic", {}, 60),
    "episodic, 128": ("episodic", {"n_facts": 128, "n_items": 10}, 60),
}
RAGS = {
    "rag_bm25": (bm25_scores,),
    "rag_grams": (bm25_scores, grams),
    "rag_dense": (dense_scores, "minilm"),
    "rag_hybrid": (hybrid_scores, "minilm"),
    "rag_rerank": None,
}


def requests(lm):
    """All items, by the worlds that they are of."""
    for name, (suite, overrides, n) in WORLDS.items():
        settings = suite_settings(suite, "default", lm.spec.context_limit, {**overrides, **TRAINED_WORDS})
        for world in cut(drawn_worlds(suite, "default", n, SEED, "val", settings), n):
            index = WorldIndex(lm, world)
            for item in world.items:
                yield name, Request(item, "delayed", 1, "minilm", AMONG, None, "short", index)


def features(rag, request):
    """What the ranking and the rule say of the best facts, and the place of the right one among them."""
    taught = request.item.taught
    if RAGS[rag]:
        scorer, *told = RAGS[rag]
        scores = standardised(scorer(request.index, taught, request.item.question, *told))
        best = sorted(ranked(scores)[:AMONG])
    else:
        preset = load_preset("baselines/rag_rerank", {"encoder": "minilm", "candidates": 1})
        first = choose(preset, request.index.lm, request.index.world, request.item, index=request.index).ranking[:AMONG]
        best = sorted(taught.index(fact) for fact in first)
        scores = np.full(len(taught), -np.inf)
        scores[best] = standardised(np.array([one.nats for one in question_likelihoods(request, best)]))
    gold = taught.index(request.item.gold_facts[0])
    terms = [frozenset(grams(request.taught[place].text)) for place in best]
    said = {"score": scores[best], "superseded": superseded(frozenset(grams(request.item.question)), terms)}
    return Example(said, best.index(gold)) if gold in best else None


if __name__ == "__main__":
    lm = load(load_spec(sys.argv[1] if len(sys.argv) > 1 else "hippo-tiny"), threads=1)
    asked = list(requests(lm))
    for rag in RAGS:
        found = [(name, features(rag, request)) for name, request in asked]
        weights = fit([one for _, one in found if one])
        print(f"{rag}: recency {-weights['superseded'] / weights['score']:.2f}")
        for name in WORLDS:
            some = [one for told, one in found if told == name]
            first = [
                np.mean([one is not None and int(np.argmax(fused(one.features, told))) == one.right for one in some])
                for told in ({"score": 1.0, "superseded": 0.0}, weights)
            ]
            print(f"  {name}: recall@1 {first[0]:.3f} without, {first[1]:.3f} with ({len(some)} cues)")

"""Fit the recency rule of retrieval (hippo_core/retrieval/ranking.py): how much an earlier version counts, for each rag that has the rule.

The worlds are those that the weights of a memory are fitted on (seed 2025, validation, no held-out words), in which versions matter or
not, and so is the fit: a conditional logit of the right fact among the best. What it prints stands in params/presets/baselines.

    python benchmarks/memory/recency.py [model]
"""

import sys

import numpy as np

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Query
from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.fusion import Example, fit, fused
from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.question_likelihood import after_text
from hippo_core.retrieval.ranking import AMONG, ranked, standardised, superseded
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.suites.draw import cut, drawn_worlds, suite_settings
from recipes.recall_weights import SEED, TRAINED_WORDS

WORLDS = {
    "episodic_multi, 16": ("episodic_multi", {}, 120),
    "episodic_multi, 128": ("episodic_multi", {"n_facts": 128, "n_items": 10}, 60),
    "episodic, 32": ("episodic", {}, 60),
    "episodic, 128": ("episodic", {"n_facts": 128, "n_items": 10}, 60),
}
RAGS = {"rag_bm25": {}, "rag_grams": {}, "rag_dense": {"encoder": "minilm"}, "rag_hybrid": {"encoder": "minilm"}, "rag_rerank": {}}


def questions(lm):
    """All items, by the worlds that they are of, each with its world's index."""
    for name, (suite, overrides, n) in WORLDS.items():
        settings = suite_settings(suite, "default", lm.spec.context_limit, {**overrides, **TRAINED_WORDS})
        for world in cut(drawn_worlds(suite, "default", n, SEED, "val", settings), n):
            index = WorldIndex(lm, passages_of(world))
            for item in world.items:
                yield name, item, index


def bound(lm, rag, **settings):
    """A rag on a model."""
    preset = load_preset(f"baselines/{rag}", settings)
    return preset.method(lm, preset.settings)


def features(rag, item, index):
    """What the ranking and the rule say of the best facts, and the place of the right one among them."""
    query, texts = Query(item.question, item.taught), [index.passages[source].text for source in item.taught]
    if rag != "rag_rerank":
        scores = standardised(bound(index.lm, rag, **RAGS[rag]).scores(index, query))
        best = sorted(ranked(scores)[:AMONG])
    else:
        best = sorted(bound(index.lm, rag, encoder="minilm", candidates=1).order(index, query)[0][:AMONG])
        scores = np.full(len(texts), -np.inf)
        likelihoods = after_text(index.lm, [texts[number] for number in best], item.question, "short")
        scores[best] = standardised(np.array([likelihood.nats for likelihood in likelihoods]))
    gold = item.taught.index(item.gold_facts[0])
    terms = [frozenset(grams(texts[number])) for number in best]
    columns = {"score": scores[best], "superseded": superseded(frozenset(grams(item.question)), terms)}
    return Example(columns, best.index(gold)) if gold in best else None


if __name__ == "__main__":
    lm = load(load_spec(sys.argv[1] if len(sys.argv) > 1 else "hippo-tiny"), threads=1)
    asked = list(questions(lm))
    for rag in RAGS:
        measured = [(name, features(rag, *row)) for name, *row in asked]
        weights = fit([row for _, row in measured if row])
        print(f"{rag}: recency {-weights['superseded'] / weights['score']:.2f}")
        for name in WORLDS:
            some = [row for label, row in measured if label == name]
            first = [
                np.mean([row is not None and int(np.argmax(fused(row.features, label))) == row.right for row in some])
                for label in ({"score": 1.0, "superseded": 0.0}, weights)
            ]
            print(f"  {name}: recall@1 {first[0]:.3f} without, {first[1]:.3f} with ({len(some)} cues)")

"""Retrieval with fitted weights: they decide, they are those that were fitted for the model, and what it costs is counted."""

import numpy as np
import pytest

from hippo_core.errors import LabError
from hippo_core.methods.rag import fitted
from hippo_core.models import artifacts
from hippo_core.models.minilm import pieces
from hippo_core.retrieval.question_likelihood import after_text
from hippo_core.retrieval.ranking import ranked
from tests.methods.asking import bound, choose, index_of, needs_minilm, query_of
from tests.models.handmade import worlds

pytestmark = needs_minilm
[WORLD, _] = worlds()
ITEM = WORLD.items[0]
NAMES = ("words", "words_covered", "grams", "grams_covered", "minilm", "minilm_covered")


@pytest.fixture
def weights(monkeypatch):
    """Weights of the test's own, all 0 but those that it names."""

    def use(**values):
        table = {name: values.get(name, 0.0) for name in NAMES}
        made = {"off": table, "predictive": {**table, "predictive": values.get("predictive", 0.0)}}
        monkeypatch.setattr(artifacts, "read_part", lambda *_: {"weights": {"words+grams+minilm": made}})

    return use


def test_the_weights_are_those_of_the_model(tiny):
    recaller = bound("baselines/rag_fitted", tiny)._recaller(index_of(tiny, WORLD))
    made = artifacts.read_part(tiny, "recall")["weights"]["words+grams+minilm"]
    assert recaller.config.weights == made
    assert set(made["off"]) == set(NAMES) and set(made["predictive"]) == {*NAMES, "predictive"}


def test_they_decide(tiny, weights):
    weights(words=1.0)
    words = choose("baselines/rag_fitted", tiny, WORLD, ITEM).ranking
    weights(words=-1.0)
    turned = choose("baselines/rag_fitted", tiny, WORLD, ITEM).ranking
    assert words[0] != turned[0] and set(words) == set(turned) == set(ITEM.taught)


@pytest.mark.parametrize("preset", ["baselines/rag_fitted", "baselines/rag_fitted_rerank"])
def test_every_taught_passage_stands_in_the_ranking_once(tiny, preset):
    for candidates in (1, 2, 20):
        ranked_ids = choose(preset, tiny, WORLD, ITEM, candidates=candidates)
        assert sorted(ranked_ids.ranking) == sorted(ITEM.taught) and len(ranked_ids.shown) == 3


def test_only_what_was_taught_is_ranked(tiny):
    retrieve = bound("baselines/rag_fitted", tiny).open(index_of(tiny, WORLD).traces)
    some = ITEM.taught[::2]
    ranking = retrieve(query_of(ITEM).__class__(ITEM.question, some)).ranking
    assert sorted(trace.source for trace in ranking) == sorted(some)


def test_a_rerank_orders_by_the_likelihood_of_the_question_as_far_as_its_weight_says(tiny, weights):
    nats = [one.nats for one in after_text(tiny, [fact.text for fact in WORLD.facts], ITEM.question, "short")]
    weights(predictive=1.0)
    ranked_ids = choose("baselines/rag_fitted_rerank", tiny, WORLD, ITEM)
    assert ranked_ids.ranking == tuple(ITEM.taught[position] for position in ranked(np.array(nats)))
    weights(words=1.0)
    assert choose("baselines/rag_fitted_rerank", tiny, WORLD, ITEM).ranking == choose("baselines/rag_fitted", tiny, WORLD, ITEM).ranking


def test_it_costs_what_the_model_runs(tiny):
    one, two = (choose("baselines/rag_fitted_rerank", tiny, WORLD, ITEM, candidates=count).computed_tokens for count in (1, 2))
    assert 0 < choose("baselines/rag_fitted", tiny, WORLD, ITEM).computed_tokens < one < two
    first, with_rerank = (choose(f"baselines/{name}", tiny, WORLD, ITEM).computed_tokens for name in ("rag_fitted", "rag_fitted_rerank"))
    judged = after_text(tiny, [fact.text for fact in WORLD.facts], ITEM.question, "short")
    assert first == pieces(ITEM.question) and with_rerank == first + sum(one.computed_tokens for one in judged)


def test_a_model_for_which_nothing_was_fitted_is_told_what_to_run(lm):
    with pytest.raises(LabError, match="has no fitted recall"):
        choose("baselines/rag_fitted", lm, WORLD, ITEM)
    assert all(pattern.startswith("{model}/") for pattern in fitted.FittedRag.weights)

"""The recency rule: earlier versions stand behind the last one, and nothing else moves."""

from dataclasses import replace

import numpy as np
import pytest

from hippo_core.retrieval.ranking import AMONG, latest_first, superseded
from hippo_core.suites.types import Fact
from tests.methods.asking import asker, choose, index_of
from tests.models.handmade import worlds

WORLD, _ = worlds()
ITEM = WORLD.items[0]
pytestmark = pytest.mark.usefixtures("minilm")


def ordered(lm, recency, order, scores, *texts, question="Where does Lea live?"):
    """This order of these facts, which are in order of telling, by the rule."""
    facts = tuple(Fact(f"f{number}", "w", text, {}, number) for number, text in enumerate(texts))
    taught = tuple(fact.id for fact in facts)
    return latest_first(index_of(lm, replace(WORLD, facts=facts)), taught, question, order, scores, recency)


def test_a_later_fact_takes_a_place_as_far_as_it_holds_what_is_asked_and_is_written_alike():
    cue, texts_as_words = (
        {"lea", "live", "where"},
        [{"lea", "live", "rome"}, {"lea", "live", "oslo", "now"}, {"tom", "live", "rome"}, {"tom"}],
    )
    by_oslo, by_rome = 1.0 * (2 / 3) ** 2, (1 / 2) ** 8 * (2 / 3) ** 2
    assert by_oslo > by_rome
    assert superseded(cue, texts_as_words) == pytest.approx([by_oslo, (1 / 2) ** 8 * (1 / 3) ** 2, 0, 0])
    assert superseded(cue, texts_as_words[::-1]) == pytest.approx([0, 1.0 * (2 / 3) ** 2, 1.0 * (2 / 3) ** 2, 0])
    assert superseded({"who"}, texts_as_words).tolist() == [0, 0, 0, 0]
    assert superseded(cue, []).shape == (0,)


@pytest.mark.parametrize(("recency", "order"), [(None, [0, 2, 1]), (0.0, [0, 2, 1]), (1.0, [2, 0, 1]), (100.0, [2, 1, 0])])
def test_the_last_version_comes_first_the_further_before_the_others_the_more_recency_counts(loaded, recency, order):
    texts = "Lea lives in Rome.", "Tom has a parrot.", "Actually, Lea lives in Oslo."
    assert ordered(loaded["qwen2"], recency, [0, 2, 1], np.array([1.2, -1.5, 1.0]), *texts) == order


def test_facts_behind_the_best_stay_where_they_were(loaded):
    count = AMONG + 5
    texts = (f"Lea lives in city {number + 10}." for number in range(count))
    order = ordered(loaded["qwen2"], 3.0, list(range(count)), -0.01 * np.arange(count), *texts)
    assert order == [AMONG - 1, *range(AMONG - 1), *range(AMONG, count)]


@pytest.mark.parametrize("name", ["rag_bm25", "rag_grams", "rag_dense", "rag_hybrid", "rag_rerank"])
def test_a_rag_that_knows_the_order_puts_a_repeated_fact_s_last_telling_first(loaded, name):
    """The same words twice score the same, so that the first telling would come first."""
    last = replace(WORLD.facts[-1], text=WORLD.facts[0].text)
    world = replace(WORLD, facts=(*WORLD.facts[:-1], last))
    for recency, expected in ((0.0, (WORLD.facts[0].id, last.id)), (4.0, (last.id, WORLD.facts[0].id))):
        ranking = choose(f"baselines/{name}", loaded["qwen2"], world, ITEM, recency=recency).ranking
        assert ranking.index(expected[0]) < ranking.index(expected[1])


@pytest.mark.parametrize("recency", [None, 50.0])
@pytest.mark.parametrize("name", ["rag_bm25", "rag_grams", "rag_dense", "rag_hybrid", "rag_rerank"])
def test_items_of_one_world_that_were_taught_different_facts_do_not_share_an_index(loaded, name, recency):
    lm = loaded["qwen2"]
    items = [replace(ITEM, taught=taught, window=()) for taught in (ITEM.taught, ITEM.taught[2:7], ITEM.taught[:5])]
    shared = asker(f"baselines/{name}", lm, WORLD, recency=recency)
    rankings = [shared(item).ranking for item in items]
    assert rankings == [choose(f"baselines/{name}", lm, WORLD, item, recency=recency).ranking for item in items]
    assert [set(ranking) for ranking in rankings] == [set(item.taught) for item in items]

"""The recency rule: earlier versions stand behind the last one, and nothing else moves."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hippo_core.conditions import WorldIndex, choose, load_preset
from hippo_core.conditions.recency import AMONG, latest_first, superseded
from hippo_core.conditions.types import Request
from tests.models.handmade import worlds

WORLD, _ = worlds()
ITEM = WORLD.items[0]
pytestmark = pytest.mark.usefixtures("minilm")


def request(recency):
    return Request(ITEM, "delayed", 1, "own", None, recency, "short", index=None)


def test_only_what_was_told_later_supersedes():
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.6, 0.8]])
    assert superseded(vectors, [0, 1, 2]) == pytest.approx([1, 0, 0])
    assert superseded(vectors, [0, 1, 3]) == pytest.approx([0.6**4, 0.8**4, 0])
    assert superseded(vectors, [2]) == pytest.approx([0])


def test_the_last_version_comes_first_and_what_is_unlike_it_keeps_its_place():
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.999, 0.0447]])
    scores = np.array([1.2, -1.5, 1.0])
    assert latest_first(request(None), [0, 2, 1], scores, lambda: vectors) == [0, 2, 1]
    assert latest_first(request(0.5), [0, 2, 1], scores, lambda: vectors) == [2, 0, 1]
    assert latest_first(request(100.0), [0, 2, 1], scores, lambda: vectors) == [2, 1, 0]


def test_facts_behind_the_best_stay_where_they_were():
    count = AMONG + 5
    vectors = torch.nn.functional.normalize(torch.randn(count, 8, generator=torch.Generator().manual_seed(1)), dim=-1)
    scores = -np.arange(count, dtype=float)
    order = latest_first(request(3.0), list(range(count)), scores, lambda: vectors)
    assert sorted(order[:AMONG]) == list(range(AMONG)) and order[AMONG:] == list(range(AMONG, count))
    assert order != list(range(count))


@pytest.mark.parametrize("name", ["rag_dense", "rag_hybrid", "rag_rerank"])
def test_a_rag_that_knows_the_order_puts_a_repeated_fact_s_last_telling_first(loaded, name):
    """The same words twice score the same, so that the first telling would come first."""
    last = replace(WORLD.facts[-1], text=WORLD.facts[0].text)
    world = replace(WORLD, facts=(*WORLD.facts[:-1], last))
    for recency, expected in ((0.0, (WORLD.facts[0].id, last.id)), (4.0, (last.id, WORLD.facts[0].id))):
        ranking = choose(load_preset(f"baselines/{name}", {"recency": recency}), loaded["qwen2"], world, ITEM).ranking
        assert ranking.index(expected[0]) < ranking.index(expected[1])


@pytest.mark.parametrize("name", ["rag_bm25", "rag_grams", "rag_dense", "rag_hybrid", "rag_rerank", "rag_dense_latest"])
def test_items_of_one_world_that_were_taught_different_facts_do_not_share_an_index(loaded, name):
    lm, preset = loaded["qwen2"], load_preset(f"baselines/{name}")
    items = [replace(ITEM, taught=taught, window=()) for taught in (ITEM.taught, ITEM.taught[2:7], ITEM.taught[:5])]
    shared = WorldIndex(lm, WORLD)
    together = [choose(preset, lm, WORLD, item, index=shared).ranking for item in items]
    assert together == [choose(preset, lm, WORLD, item).ranking for item in items]
    assert [set(ranking) for ranking in together] == [set(item.taught) for item in items]

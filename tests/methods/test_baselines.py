"""Baselines and rags: what each shows, that it sees the taught facts only, and how retrieval ranks."""

import dataclasses
import math

import pytest

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.composite import Composite
from hippo_core.methods.presets import load_preset, preset_names
from hippo_core.methods.rag.rankers import BM25, RagSettings
from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.scores import bm25_scores, dense_scores
from hippo_core.retrieval.synonyms import meanings
from hippo_core.suites.types import Fact
from tests.methods.asking import bound, choose, index_of, query_of
from tests.models.handmade import worlds

UNTAUGHT = [
    preset.name
    for preset in map(load_preset, preset_names())
    if not preset.method.weights
    and not issubclass(preset.method, Composite)  # which reads its parts' stores
    and getattr(preset.settings, "versions", "") != "read"  # with what was fitted to MiniLM itself, which is another encoder here
]
ENCODED = ("baselines/rag_dense", "baselines/rag_hybrid", "baselines/rag_rerank")
MINILM = [(name, "minilm") for name in ENCODED]
LEXICAL = [(f"baselines/rag_{name}", None) for name in ("bm25", "grams", "synonyms")]
RANKING = [*LEXICAL, *((name, "own") for name in ENCODED), *MINILM]
SIMILAR = [named for named in RANKING if "rerank" not in named[0]]  # what is most like the question is best
EVERY = [*((name, None) for name in UNTAUGHT), *MINILM]
WORLD, SMALL = worlds()
ITEM = WORLD.items[0]
pytestmark = pytest.mark.usefixtures("minilm")


def overrides_of(named, **overrides):
    """The name and the overrides of a (name, encoder); None leaves the encoder as it is."""
    name, encoder = (named, None) if isinstance(named, str) else named
    return name, {**({"encoder": encoder} if encoder else {}), **overrides}


def chosen(named, lm, item=ITEM, regime="delayed", world=WORLD, **overrides):
    name, values = overrides_of(named, **overrides)
    return choose(name, lm, world, item, regime, **values)


def shown(named, lm, item=ITEM, regime="delayed", world=WORLD, **overrides) -> list[str]:
    return [fact.partition("/")[2] for fact in chosen(named, lm, item, regime, world, **overrides).shown]


@pytest.mark.parametrize("preset", ["baselines/core", "baselines/span_short"])
def test_the_window_stands_in_the_immediate_regime_only(loaded, preset):
    assert shown(preset, loaded["qwen2"], regime="immediate") == ["f4", "f5", "f6", "f7"]
    assert shown(preset, loaded["qwen2"], regime="delayed") == []


def test_longctx_shows_all_and_oracle_the_gold(loaded):
    assert shown("baselines/longctx", loaded["qwen2"]) == [f"f{number}" for number in range(8)]
    assert shown("controls/oracle", loaded["qwen2"]) == ["f0"]
    assert shown("controls/oracle", loaded["qwen2"], SMALL.items[1], world=SMALL) == ["f0", "f2"]


def test_random_facts_are_never_gold_and_do_not_change(loaded):
    for item in SMALL.items:
        drawn = shown("controls/random_facts", loaded["qwen2"], item, world=SMALL)
        assert len(drawn) == len(item.gold_facts)
        assert not {f"{SMALL.id}/{name}" for name in drawn} & set(item.gold_facts)
        assert drawn == shown("controls/random_facts", loaded["qwen2"], item, world=SMALL)
    assert len(shown("controls/random_facts", loaded["qwen2"], k=5)) == 5
    assert len(shown("controls/random_facts", loaded["qwen2"], k=50)) == 7


@pytest.mark.parametrize("preset", EVERY, ids=str)
def test_only_presets_that_use_the_window_depend_on_the_regime(lm, preset):
    immediate, delayed = (shown(preset, lm, regime=regime) for regime in ("immediate", "delayed"))
    assert (immediate == delayed) == load_preset(*overrides_of(preset)).method.ignores_window


@pytest.mark.parametrize("preset", EVERY, ids=str)
@pytest.mark.parametrize("regime", ["immediate", "delayed"])
def test_what_was_not_taught_is_never_seen(lm, preset, regime):
    untaught = dataclasses.replace(ITEM, taught=ITEM.taught[2:6], window=ITEM.taught[3:6])
    choice = chosen(preset, lm, untaught, regime)
    assert set(choice.shown) <= set(untaught.taught)
    assert choice.ranking is None or sorted(choice.ranking) == sorted(untaught.taught)


@pytest.mark.parametrize("preset", EVERY, ids=str)
def test_changing_an_untaught_fact_changes_nothing(lm, preset):
    item = dataclasses.replace(ITEM, taught=ITEM.taught[:6], window=ITEM.taught[3:6])
    tempting = [dataclasses.replace(fact, text=ITEM.question) for fact in WORLD.facts[6:]]
    other = dataclasses.replace(WORLD, facts=(*WORLD.facts[:6], *tempting))
    before, after = (chosen(preset, lm, item, world=world) for world in (WORLD, other))
    assert (before.shown, before.ranking) == (after.shown, after.ranking)


@pytest.mark.parametrize("preset", EVERY, ids=str)
def test_nothing_taught_is_nothing_shown(lm, preset):
    assert chosen(preset, lm, dataclasses.replace(ITEM, taught=(), window=())).shown == ()


@pytest.mark.parametrize("preset", RANKING, ids=str)
@pytest.mark.parametrize("k", [1, 3, 8, 100])
def test_the_k_best_are_shown_in_order_of_telling(lm, preset, k):
    choice = chosen(preset, lm, k=k)
    ids = choice.shown
    assert list(ids) == sorted(choice.ranking[:k])
    assert len(ids) == min(k, 8)
    assert choice.retrieval_ms > 0


@pytest.mark.parametrize("preset", RANKING, ids=str)
def test_equal_facts_rank_in_order_of_telling(lm, preset):
    same = tuple(dataclasses.replace(fact, text="Mara sold a guitar.") for fact in WORLD.facts)
    assert chosen(preset, lm, world=dataclasses.replace(WORLD, facts=same)).ranking == ITEM.taught


@pytest.mark.parametrize("preset", SIMILAR, ids=str)
def test_a_fact_that_is_the_question_comes_first(lm, preset):
    facts = (*WORLD.facts[:7], dataclasses.replace(WORLD.facts[7], text=ITEM.question))
    assert chosen(preset, lm, world=dataclasses.replace(WORLD, facts=facts)).ranking[0] == WORLD.facts[7].id


def test_bm25_is_lucenes_formula(loaded):
    """idf = ln(1 + (N - df + .5) / (df + .5)), times tf / (tf + k1 (1 - b + b |d| / mean|d|))."""
    documents = [words(fact.text) for fact in WORLD.facts]
    mean = sum(map(len, documents)) / len(documents)

    def due(document: list[str]) -> float:
        total = 0.0
        for word in words(ITEM.question):
            df, tf = sum(word in other for other in documents), document.count(word)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(document) / mean))
        return total

    got = bm25_scores(index_of(loaded["qwen2"], WORLD), ITEM.taught, ITEM.question)
    assert got == pytest.approx([due(document) for document in documents], rel=1e-5)


def test_bm25_without_a_shared_word_or_without_words_is_zero(loaded):
    assert not bm25_scores(index_of(loaded["qwen2"], WORLD), ITEM.taught, "xyzzy?").any()
    silent = dataclasses.replace(WORLD, facts=(Fact("f", WORLD.id, "...", {}, 0),))
    assert not bm25_scores(index_of(loaded["qwen2"], silent), ("f",), "Who?").any()


def test_hybrid_is_the_sum_of_z_scores(lm):
    index = index_of(lm, WORLD)
    both = [score(index, ITEM.taught, ITEM.question) for score in (bm25_scores, dense_scores)]
    due = sum((scores - scores.mean()) / scores.std() for scores in both)
    assert bound("baselines/rag_hybrid", lm).scores(index, query_of(ITEM)) == pytest.approx(due, abs=1e-5)


@pytest.mark.parametrize(
    ("told", "asked"),
    [("Ann got hold of a sofa.", "Who did acquire a couch?"), ("Bo went by car", "Bo took the car"), ("at the inn", "hotel")],
)
def test_synonyms_share_their_meanings(told, asked):
    assert {word for word in meanings(told) if word.startswith("=")} == {word for word in meanings(asked) if word.startswith("=")}
    assert any(word.startswith("=") for word in meanings(told))


def test_what_an_encoder_runs_for_a_question_is_counted(loaded):
    lm = loaded["qwen2"]
    ran = {name: choose(f"baselines/{name}", lm, WORLD, ITEM).computed_tokens for name in ("rag_bm25", "rag_grams", "rag_dense")}
    assert ran == {"rag_bm25": 0, "rag_grams": 0, "rag_dense": len(lm.encode(ITEM.question)) + 1}


def test_the_time_is_that_of_one_query_and_no_index(loaded, monkeypatch):
    now = [0.0]

    class Slow(BM25):
        def scores(self, index, query):
            now[0] += 0.25
            return super().scores(index, query)

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    retrieve = Slow(loaded["qwen2"], RagSettings()).open(passages_of(WORLD))
    assert [retrieve(query_of(item)).recall_ms for item in WORLD.items] == [250.0] * 3
    assert now == [1.0]  # a first time, while the clock stands, and once a question

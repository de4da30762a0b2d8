"""Controls that reach the answer: each memory computes on an altered store, on another world's, on gold and on wrong traces; and what a row
says that the model read is what was run, token for token."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from hippo_core.evaluation.run import answer
from hippo_core.methods.presets import load_preset
from hippo_core.protocols.questions import run
from hippo_core.store import store_path
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from tests.models.running import runs_of, runs_to_read

SUITES = {"memory/hei_nw": "episodic", "memory/sgc_rss": "semantic", "memory/smpd": "spatial", "memory/all": "mixed"}
ALTERED = {"memory/sgc_rss": "controls/altered_sgc_rss", "memory/smpd": "controls/altered_smpd", "memory/all": "controls/altered_all"}


@pytest.fixture(scope="module")
def taught_stores(hippo, tmp_path_factory):
    """A function from a preset to its suite, some worlds of it, and the stores that they were told to."""
    stores, folder = {}, tmp_path_factory.mktemp("told")
    drawn = {suite: list(worlds(suite, "default", 10, 1337, "val", hippo.spec.context_limit)) for suite in SUITES.values()}

    def taught_store(preset, suite):
        if preset not in stores:
            files = {}
            for name, part in method(hippo, preset).parts.items():
                path = folder / preset / (name or "alone")
                run.teach(part, get_suite(suite), drawn[suite], [], path, "s1")
                files[name] = store_path(path, "s1", part.algorithm())
            stores[preset] = files
        return get_suite(suite), drawn[suite], stores[preset]

    return taught_store


def method(lm, preset, **settings):
    loaded = load_preset(preset, settings)
    return loaded.method(lm, loaded.settings)


def asked(lm, taught_stores, preset, suite, **settings):
    kind, some, stores = taught_stores(preset, suite)
    return run.test(method(lm, preset, **settings), kind, some, "delayed", stores)


@pytest.mark.parametrize("preset", ALTERED)
def test_answers_follow_the_altered_store_and_not_the_truth(hippo, taught_stores, preset):
    rows = asked(hippo, taught_stores, ALTERED[preset], SUITES[preset])
    assert rows["follows_store"].count() == len(rows) and rows["follows_store"].mean() >= 0.8
    assert rows["score"].mean() <= rows["chance"].mean() + 0.05
    usual = asked(hippo, taught_stores, preset, SUITES[preset])
    assert usual["follows_store"].tolist() == usual["score"].tolist()
    assert usual["score"].mean() >= 0.7


@pytest.mark.parametrize("preset", ALTERED)
def test_other_traces_are_worth_nothing_and_the_gold_ones_are_enough(hippo, taught_stores, preset):
    rows = {name: asked(hippo, taught_stores, preset, SUITES[preset], control=name) for name in ("shuffled", "random", "oracle")}
    for name in ("shuffled", "random"):
        assert rows[name]["score"].mean() <= rows[name]["chance"].mean() + 0.05
        assert not rows[name]["follows_store"].count()  # nothing that was opened tells the answer
    assert rows["oracle"]["score"].mean() >= 0.7
    assert "program" in set(rows["oracle"]["composed_by"].str.split(",").str[0]) or preset == "memory/sgc_rss"


@pytest.mark.parametrize("preset", ALTERED)
def test_an_empty_structure_is_the_plain_model(hippo, taught_stores, preset):
    kind, some, _ = taught_stores(preset, SUITES[preset])
    empty = asked(hippo, taught_stores, preset, SUITES[preset], control="empty")
    plain = answer(hippo, kind, some, method(hippo, "baselines/span_short"))
    assert empty["pred"].tolist() == plain["pred"].tolist()
    assert empty["first_logprob"].tolist() == pytest.approx(plain["first_logprob"].tolist(), abs=1e-5)


CASES = [
    *((preset, delivery, {}) for preset in SUITES for delivery in ("text", "kv", "adapter")),
    *(("memory/sgc_rss", delivery, {"relational.wording": wording}) for delivery in ("text", "kv") for wording in ("question", "plain")),
]


@pytest.mark.parametrize(("preset", "delivery", "settings"), CASES)
def test_a_row_says_what_the_model_ran_token_for_token(hippo, taught_stores, preset, delivery, settings):
    kind, some, stores = taught_stores(preset, SUITES[preset])
    memory = method(hippo, preset, delivery=delivery, **settings)
    stored, _ = run.read(memory, some, stores)
    ran = runs_of(hippo, memory.delivery)
    for world in some:
        for item in world.items[:3]:  # one at a time, so that what runs is that item's
            ran.clear()
            alone = replace(world, items=(item,))
            [answered] = run.ask(kind, [alone], memory, "delayed", stored, 1)
            row = run.row_of(hippo, kind, answered)
            parts = [*json.loads(row["inner_read"] or "[]"), *json.loads(row["read"])]
            read = Counter(map(tuple, runs_to_read(hippo, parts, answered.retrieved.together, delivery)))
            again = row["abstained"]  # it is asked once more, and may not say "unknown"
            assert set(map(tuple, ran)) == set(read) and (again or Counter(map(tuple, ran)) == read)
            if not row["inner_read"]:
                *lines, last = runs_to_read(hippo, json.loads(row["read"]), answered.retrieved.together, delivery)
                once = sum(map(len, lines)) * (not answered.retrieved.composed)  # of what is stored; a text made for a question is its own
                assert answered.answer.computed_tokens == sum(map(len, lines)) - once + len(last)
                assert answered.once.tokens == memory.index_tokens(stored[world.id]) + answered.retrieved.once_tokens + once

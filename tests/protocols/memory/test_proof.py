"""The rules of proof, on hippo-tiny and every episodic suite: the memory reaches the model, and nothing else does."""

import pytest

from hippo_core.conditions import load_memory
from hippo_core.protocols import memory
from hippo_core.results.scores import check_rows
from hippo_core.suites.datasets.build import worlds

from .conftest import SESSION

SUITES = ("episodic", "episodic_multi", "episodic_cross", "episodic_capacity")


@pytest.mark.parametrize("suite", SUITES)
def test_an_empty_memory_is_the_plain_model_token_for_token_though_all_is_run(benches, suite):
    bench = benches(suite)
    empty, plain = bench.ask("controls/empty_store"), bench.plain
    assert empty["pred"].tolist() == plain["pred"].tolist()
    assert empty["generated_tokens"].tolist() == plain["generated_tokens"].tolist()
    assert empty["prompt_tokens"].tolist() == plain["prompt_tokens"].tolist()
    assert (empty["trace_tokens"] > 0).all()


@pytest.mark.parametrize("inject", ["kv", "text", "adapter"])
def test_empty_is_plain_in_every_way_of_injecting(benches, inject):
    bench = benches("episodic")
    assert bench.ask("controls/empty_store", inject=inject)["pred"].tolist() == bench.plain["pred"].tolist()


@pytest.mark.parametrize("suite", SUITES)
def test_what_was_taught_is_known_and_other_traces_are_worth_nothing(benches, suite):
    bench = benches(suite)
    score = {name: bench.ask(name)["score"].mean() for name in ("memory/hei_nw", *(f"controls/{c}" for c in CONTROLS))}
    assert score["controls/oracle_store"] >= 0.9
    assert score["memory/hei_nw"] >= bench.plain["score"].mean() + 0.5
    assert score["controls/shuffled_store"] <= 0.35
    assert score["controls/random_traces"] <= 0.35
    assert score["controls/empty_store"] == bench.plain["score"].mean()


CONTROLS = ("oracle_store", "shuffled_store", "random_traces", "empty_store")


def test_the_store_is_all_that_passes_from_teaching_to_asking(benches, tmp_path):
    bench = benches("episodic")
    other = list(worlds("episodic", "default", 20, 4242, "val", bench.lm.spec.context_limit))
    preset = load_memory("memory/hei_nw")
    memory.teach(bench.lm, bench.suite, other, [], preset, tmp_path, SESSION)
    rows = memory.test(bench.lm, bench.suite, bench.worlds, preset, "delayed", tmp_path, SESSION)
    moved = [
        {fact.text for fact in world.facts} & {fact.text for fact in there.facts} for world, there in zip(bench.worlds, other, strict=True)
    ]
    assert not any(moved)
    assert rows["recall_1"].sum() == 0 or rows["score"].mean() < 0.4


@pytest.mark.parametrize("suite", SUITES)
def test_rows_stand_up_to_the_suites_own_files_and_hold_no_taught_text(benches, suite):
    bench = benches(suite)
    rows = bench.ask("memory/hei_nw")
    check_rows(bench.suite, bench.worlds, rows)
    facts = {world.id: [fact.text for fact in world.facts] for world in bench.worlds}
    assert not any(text in prompt for prompt, world in zip(rows["prompt"], rows["world"], strict=True) for text in facts[world])
    assert (rows["recall_1"] <= rows["recall_3"]).all()
    assert rows["requests"].eq(1).all()


def test_the_batch_changes_no_answer(benches):
    bench = benches("episodic")
    preset = load_memory("memory/hei_nw")
    place, _ = bench.taught(preset)
    one = memory.test(bench.lm, bench.suite, bench.worlds, preset, "delayed", place, SESSION, batch_size=1)
    many = bench.ask("memory/hei_nw")
    for column in ("pred", "shown", "recall_1", "scores", "trace_tokens"):
        assert one[column].tolist() == many[column].tolist()

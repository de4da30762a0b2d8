"""The rules of proof, on hippo-tiny and every episodic suite: the memory reaches the model, and nothing else does.

That two answers are the same letters proves little where both are "unknown", as nearly all are without the right fact: so the
log-probability of the first token is compared too. In fp32 it moves by some 1e-6 when the same is computed in another order; where the
model is all but sure of "unknown", a wrong fact moves it by hardly more, so that not every question shows it.
"""

from dataclasses import replace

import numpy as np
import pytest

from hippo_core.errors import LabError
from hippo_core.evaluation.run import answer
from hippo_core.methods.episodic.components import load_key_model
from hippo_core.methods.presets import load_preset
from hippo_core.models.prompt import lines_of, split
from hippo_core.protocols.questions import run
from hippo_core.results.scores import check_rows
from hippo_core.store import TraceStore
from hippo_core.suites.draw import worlds
from tests.protocols.questions.conftest import SESSION

SUITES = ("episodic", "episodic_multi", "episodic_cross", "episodic_capacity")
CONTROLS = ("oracle_store", "shuffled_store", "random_traces", "empty_store")
ROUNDING = 1e-5  # nats


@pytest.mark.parametrize("suite", SUITES)
def test_an_empty_memory_is_the_plain_model_token_for_token_though_all_is_run(benches, suite):
    bench = benches(suite)
    empty, plain = bench.ask("controls/empty_store"), bench.plain
    assert empty["pred"].tolist() == plain["pred"].tolist()
    assert empty["generated_tokens"].tolist() == plain["generated_tokens"].tolist()
    assert empty["prompt_tokens"].tolist() == plain["prompt_tokens"].tolist()
    assert (empty["trace_tokens"] > 0).all()
    assert np.abs(empty["first_logprob"] - plain["first_logprob"]).max() < ROUNDING


@pytest.mark.parametrize(("control", "moved"), [("none", 0.95), ("oracle", 0.95), ("shuffled", 0.6), ("random", 0.6)])
def test_a_trace_that_is_seen_moves_the_model_even_where_the_letters_stay(benches, control, moved):
    bench = benches("episodic")
    seen, plain = bench.ask("memory/hei_nw", control=control), bench.plain
    assert (np.abs(seen["first_logprob"] - plain["first_logprob"]) > ROUNDING).mean() >= moved
    if control in ("shuffled", "random"):
        assert (seen["pred"] == plain["pred"]).mean() >= 0.8  # the letters alone would have let it pass


@pytest.mark.parametrize("delivery", ["text", "adapter"])  # keys and values: above
def test_empty_is_plain_in_every_way_of_injecting(benches, delivery):
    bench = benches("episodic")
    empty = bench.ask("controls/empty_store", delivery=delivery)
    assert empty["pred"].tolist() == bench.plain["pred"].tolist()
    assert np.abs(empty["first_logprob"] - bench.plain["first_logprob"]).max() < ROUNDING


@pytest.mark.parametrize("suite", SUITES)
def test_what_was_taught_is_known_and_other_traces_are_worth_nothing(benches, suite):
    bench = benches(suite)
    score = {name: bench.ask(name)["score"].mean() for name in ("memory/hei_nw", *(f"controls/{c}" for c in CONTROLS))}
    assert score["controls/oracle_store"] >= 0.9
    assert score["memory/hei_nw"] >= bench.plain["score"].mean() + 0.5
    assert score["controls/shuffled_store"] <= 0.35
    assert score["controls/random_traces"] <= 0.35
    assert score["controls/empty_store"] == bench.plain["score"].mean()


def test_the_store_is_all_that_passes_from_teaching_to_asking(benches, tmp_path):
    bench = benches("episodic")
    other = list(worlds("episodic", "default", 20, 4242, "val", bench.lm.spec.context_limit))
    run.teach(bench.method("memory/hei_nw"), bench.suite, other, [], tmp_path, SESSION)
    rows = bench.test("memory/hei_nw", store=tmp_path)
    moved = [
        {fact.text for fact in world.facts} & {fact.text for fact in there.facts} for world, there in zip(bench.worlds, other, strict=True)
    ]
    assert not any(moved)
    assert rows["score"].mean() <= rows["chance"].mean() + 0.05


def test_the_store_holds_what_was_told_to_the_letter(benches):
    bench = benches("episodic")
    path, _ = bench.taught("memory/hei_nw")
    with TraceStore.open(path, SESSION, bench.method("memory/hei_nw").identity(), read_only=True) as store:
        stored = {(trace.world, trace.source): (trace.text, trace.payload.token_ids) for trace in store.traces()}
    facts = [fact for world in bench.worlds for fact in world.facts]
    blocks = split(bench.lm, [fact.text for fact in facts], "What?", "short").blocks
    taught = {(fact.world, fact.id): (fact.text, tuple(ids)) for fact, ids in zip(facts, blocks, strict=True)}
    assert stored == taught


@pytest.mark.parametrize("suite", SUITES)
def test_answers_follow_the_store_and_not_the_suites_files(benches, suite):
    bench = benches(suite)
    rows = bench.ask("controls/altered_store")
    assert rows["follows_store"].mean() >= 0.85
    assert rows["score"].mean() <= 0.1
    usual = bench.ask("memory/hei_nw")
    assert usual["follows_store"].tolist() == usual["score"].tolist()


@pytest.mark.parametrize("delivery", ["text", "adapter"])
def test_answers_follow_the_store_by_every_way_of_injecting(benches, delivery):
    rows = benches("episodic").ask("controls/altered_store", delivery=delivery)
    assert rows["follows_store"].mean() >= 0.8
    assert rows["score"].mean() <= 0.1


def relabelled(world):
    """The world with the answers and gold facts of other items of it."""
    others = (*world.items[1:], world.items[0])
    labels = [{"answers": (f"not {other.answers[0]}",), "gold_facts": other.gold_facts} for other in others]
    return replace(world, items=tuple(replace(item, **label) for item, label in zip(world.items, labels, strict=True)))


@pytest.mark.parametrize("preset", ["memory/hei_nw", "ablations/hopfield", "controls/shuffled_store", "controls/empty_store"])
def test_a_memory_is_blind_to_labels(benches, preset):
    bench = benches("episodic")
    blind = bench.test(preset, worlds=[*map(relabelled, bench.worlds)])
    usual = bench.ask(preset)
    for column in ("pred", "shown", "scores", "candidates", "first_logprob"):
        assert blind[column].tolist() == usual[column].tolist()
    assert not (blind["answer"] == usual["answer"]).any()


@pytest.mark.parametrize("preset", ["longctx", "rag_bm25", "rag_rerank"])
def test_a_baseline_is_blind_to_labels(benches, preset):
    bench = benches("episodic")
    method = bench.method(f"baselines/{preset}")
    usual, blind = (answer(bench.lm, bench.suite, some, method) for some in (bench.worlds, [*map(relabelled, bench.worlds)]))
    assert blind[["pred", "shown"]].equals(usual[["pred", "shown"]])


def test_random_traces_are_never_gold(benches):
    bench = benches("episodic_multi")
    gold = [item.gold_facts for world in bench.worlds for item in world.items]
    shown = bench.ask("controls/random_traces", k=5)["shown"].str.split(";")
    assert not any(set(ids) & set(facts) for ids, facts in zip(shown, gold, strict=True))
    assert (shown.map(len) == 5).all()


def test_only_what_was_taught_for_an_item_is_recalled_for_it(benches):
    bench = benches("episodic")
    halves = [
        replace(world, items=tuple(replace(item, taught=item.taught[number % 2 :: 2]) for number, item in enumerate(world.items)))
        for world in bench.worlds
    ]
    rows = bench.test("memory/hei_nw", worlds=halves)
    taught = [set(item.taught) for world in halves for item in world.items]
    assert all(set(shown.split(";")) <= here for shown, here in zip(rows["shown"], taught, strict=True))


def test_a_question_that_tells_a_fact_is_refused(benches):
    bench = benches("episodic")
    world = bench.worlds[0]
    tells = replace(world.items[0], question=f"{world.facts[3].text} {world.items[0].question}")
    with pytest.raises(LabError, match="leak"):
        bench.test("memory/hei_nw", worlds=[replace(world, items=(tells,))])


def test_a_question_costs_all_that_was_run_for_it(benches):
    bench = benches("episodic")
    rows, lm = bench.ask("ablations/predictive", episodic__predictive__candidates=32), bench.lm
    pieces = [split(lm, (), question, "short") for question in rows["question"]]
    blocks = max(load_key_model(lm).head.settings.blocks) / lm.config.num_hidden_layers
    key = [len(lm.encode(question)) * blocks for question in rows["question"]]  # runs through the first blocks alone
    predicted = [count * (1 + piece.question_tokens) for count, piece in zip(rows["candidates"], pieces, strict=True)]
    answered = [len(piece.tail) + generated for piece, generated in zip(pieces, rows["generated_tokens"], strict=True)]
    assert rows["computed_tokens"].tolist() == pytest.approx(np.sum([key, predicted, answered], axis=0).tolist())
    assert rows["once_tokens"].sum() == pytest.approx(once(bench))
    assert (rows["retrieval_ms"] >= rows["completion_ms"]).all() and (rows["completion_ms"] > 0).all()
    assert np.allclose(rows["retrieval_ms"], rows["recall_ms"] + rows["completion_ms"])


def once(bench):
    """What is run once for these worlds: each fact's key, and each fact's keys and values, as all are candidates."""
    lm, texts = bench.lm, [fact.text for world in bench.worlds for fact in world.facts]
    blocks = max(load_key_model(lm).head.settings.blocks) / lm.config.num_hidden_layers
    return sum(len(lm.encode(text)) * blocks for text in texts) + sum(map(len, lines_of(lm, texts, "short")))


def test_what_is_run_once_is_counted_alike_for_a_memory_and_for_a_rag(benches):
    """A memory's codes are made when it is told, a rag's when it is opened: both are counted, shared by the questions, and apart."""
    bench = benches("episodic")
    lm, texts = bench.lm, [fact.text for world in bench.worlds for fact in world.facts]
    rag = load_preset("baselines/rag_dense")
    rows = answer(lm, bench.suite, bench.worlds, rag.method(lm, rag.settings))
    assert rows["once_tokens"].sum() == pytest.approx(sum(len(lm.encode(text)) + 1 for text in texts))
    assert bench.ask("memory/hei_nw")["once_tokens"].sum() > 0
    word_search = load_preset("baselines/rag_bm25")
    assert not answer(lm, bench.suite, bench.worlds, word_search.method(lm, word_search.settings))["once_tokens"].any()


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
    single, many = bench.test("memory/hei_nw", batch_size=1), bench.ask("memory/hei_nw")
    for column in ("pred", "shown", "recall_1", "scores", "trace_tokens"):
        assert single[column].tolist() == many[column].tolist()

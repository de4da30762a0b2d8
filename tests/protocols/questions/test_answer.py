"""Evaluation on two handmade worlds: every preset, both regimes, three architectures; rows, leaks, truncation."""

import dataclasses
import json
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from hippo_core.delivery import load_delivery
from hippo_core.errors import LabError
from hippo_core.evaluation.run import COLUMNS, _has_all_gold, _recalled_texts, answer
from hippo_core.evaluation.table import asked_metrics, has_flag
from hippo_core.methods.base import Method, Retrieved
from hippo_core.methods.presets import load_preset, preset_names
from hippo_core.models.kv_storage import KVStorage
from hippo_core.protocols.questions.parameters import AnswerParameters
from hippo_core.protocols.questions.protocol import answers_in_words
from hippo_core.results.scores import RANKING_COLUMNS, answer_recall, check_rows, score_ranking
from hippo_core.store.trace import Trace
from hippo_core.suites.types import Item
from tests.models.handmade import suite, worlds

TIMES = ["latency_ms", "retrieval_ms", "plan_ms"]
ROUNDING = 1e-5  # nats
COSTS = [*TIMES, "computed_tokens"]  # what is run once for several rows is divided among them, so it depends on the batch
PRESETS = [load_preset(name) for name in preset_names()]
UNTAUGHT = [preset.name for preset in PRESETS if not (preset.taught or preset.method.weights or preset.settings.requires)]
WINDOWED = [name for name in UNTAUGHT if not load_preset(name).method.ignores_window]


def rows(lm, name, regime="delayed", batch_size=4, asked=None, delivery="text", **changes) -> pd.DataFrame:
    preset = load_preset(name, {"delivery": delivery})
    method = preset.method(lm, preset.settings)
    if delivery != "text":
        method.delivery = load_delivery(delivery, lm, method.settings.decoding, KVStorage(precision="model"))  # else it is kept in 16 bits
    return answer(lm, suite(**changes), worlds() if asked is None else asked, method, regime, batch_size)


@pytest.mark.parametrize("regime", ["immediate", "delayed"])
@pytest.mark.parametrize("preset", UNTAUGHT)
def test_every_preset_gives_whole_rows(lm, preset, regime):
    table = rows(lm, preset, regime)
    assert tuple(table.columns) == (*COLUMNS, *load_preset(preset).method.columns.get("test", ()))
    assert table["item_id"].tolist() == [item.id for world in worlds() for item in world.items]
    assert table["idx"].tolist() == list(range(5))
    assert (table["n_shown"] == [len(ids.split(";")) if ids else 0 for ids in table["shown"]]).all()
    assert table["recall_1"].notna().all() == ("rag" in preset)
    assert (table["generated_tokens"] <= suite().answer_budget).all()
    assert (table["computed_tokens"] >= table["generated_tokens"]).all()
    assert ((table["trace_tokens"] > 0) == (table["n_shown"] > 0)).all()
    check_rows(suite(), worlds(), table)


def test_a_row_has_the_texts_that_were_recalled_best_first_and_whether_the_gold_facts_are_among_them(lm):
    facts = {fact.id: fact.text for world in worlds() for fact in world.facts}
    table = rows(lm, "baselines/rag_bm25")
    for item, row in zip([item for world in worlds() for item in world.items], table.to_dict("records"), strict=True):
        recalled, shown = json.loads(row["recalled_texts"]), row["shown"].split(";")
        assert sorted(text for text, _ in recalled) == sorted(facts[fact_id] for fact_id in shown)
        assert row["found"] == (set(item.gold_facts) <= set(shown))
        assert (row["recall_1"] > 0) == (recalled[0][0] in {facts[fact_id] for fact_id in item.gold_facts})
    assert not rows(lm, "baselines/span_short")["recalled_texts"].any()


def test_facts_are_found_where_all_gold_ones_or_what_tells_them_again_are_shown():
    item = Item("q", "w", "Where?", ("here",), ("f1", "f2"), "own", retold={"f3": "f2"})
    shown = {name: Trace("w", name, name, time=1, id=1) for name in ("f1", "f2", "f3", "f4")}
    cases = {("f1", "f2"): 1, ("f4", "f3", "f1"): 1, ("f1", "f4"): 0, ("f2", "f3"): 0, (): 0}
    assert {names: _has_all_gold([shown[name] for name in names], item) for names in cases} == cases
    assert np.isnan(_has_all_gold([], dataclasses.replace(item, gold_facts=())))


def test_recalled_texts_have_the_scores_of_their_own_traces():
    traces = [Trace("w", f"f{number}", f"text {number}", time=number, id=number) for number in (1, 2, 3)]
    strange = Trace("other", "g1", "of another world", time=9, id=2)
    retrieved = Retrieved(tuple(traces), (traces[2], traces[0], traces[1]), (0.9, 0.5))
    assert json.loads(_recalled_texts(retrieved, traces)) == [["text 3", 0.9], ["text 1", 0.5], ["text 2", None]]
    assert json.loads(_recalled_texts(retrieved, [strange])) == [["of another world", None]]


@pytest.mark.parametrize("preset", UNTAUGHT)
def test_the_batch_size_changes_no_row(lm, preset):
    single, five = (rows(lm, preset, batch_size=size).drop(columns=COSTS, errors="ignore") for size in (1, 5))
    pd.testing.assert_frame_equal(single, five)


def test_keys_and_values_give_the_same_whatever_the_batch_and_one_passage_is_the_plain_prompt(lm):
    def asked(name, batch_size, delivery):
        return rows(lm, name, batch_size=batch_size, delivery=delivery).drop(columns=COSTS, errors="ignore")

    if getattr(lm.config, "sliding_window", None):
        with pytest.raises(LabError, match="sees the last 24 tokens only"):
            asked("controls/oracle", 5, "kv")
        return
    for name in ("baselines/longctx", "controls/oracle"):
        pd.testing.assert_frame_equal(asked(name, 1, "kv"), asked(name, 5, "kv"))
    batched, text = asked("controls/oracle", 5, "kv"), asked("controls/oracle", 5, "text")
    single, same = batched["n_shown"] == 1, ["pred", "shown", "generated_tokens", "prompt_tokens", "trace_tokens"]
    assert single.any()
    assert (batched.loc[single, "prompt"] != text.loc[single, "prompt"]).all()  # the question alone
    pd.testing.assert_frame_equal(batched.loc[single, same], text.loc[single, same])
    assert np.abs(batched.loc[single, "first_logprob"] - text.loc[single, "first_logprob"]).max() < ROUNDING


@pytest.mark.parametrize("preset", WINDOWED)
def test_the_window_stands_in_the_prompt_or_nothing_does(lm, preset):
    texts = {fact.id: fact.text for world in worlds() for fact in world.facts}
    windows = [item.window for world in worlds() for item in world.items]
    for prompt, window in zip(rows(lm, preset, "immediate")["prompt"], windows, strict=True):
        assert [fact for fact, text in texts.items() if text in prompt] == list(window)
    for prompt in rows(lm, preset, "delayed")["prompt"]:
        assert not any(text in prompt for text in texts.values())


@pytest.mark.parametrize("preset", sorted({*UNTAUGHT} - {*WINDOWED}))
def test_other_presets_give_the_same_rows_in_both_regimes(lm, preset):
    immediate, delayed = (rows(lm, preset, regime).drop(columns=TIMES, errors="ignore") for regime in ("immediate", "delayed"))
    pd.testing.assert_frame_equal(immediate, delayed)


def test_shown_facts_are_those_in_the_prompt_after_truncation(lm):
    small = dataclasses.replace(lm, spec=lm.spec.model_copy(update={"context_limit": 140}))
    table = rows(small, "baselines/longctx")
    texts = {fact.id: fact.text for world in worlds() for fact in world.facts}
    sources = [item.taught for world in worlds() for item in world.items]
    assert (table["n_dropped"] > 0).any()
    assert (table["prompt_tokens"] + suite().answer_budget <= 140).all()
    for row, taught in zip(table.to_dict("records"), sources, strict=True):
        shown = [fact for fact in row["shown"].split(";") if fact]
        assert shown == [fact for fact in taught if texts[fact] in row["prompt"]] == list(taught[row["n_dropped"] :])
        assert ("truncated" in row["flags"].split(";")) == (row["n_dropped"] > 0)


def test_a_question_that_holds_a_fact_is_a_leak(loaded):
    [world, _] = worlds()
    leaking = dataclasses.replace(world.items[0], question=f"{world.facts[0].text} Who was it?")
    with pytest.raises(LabError, match=r"leak: the prompt of item test-00000/q0 holds facts.*test-00000/f0"):
        rows(loaded["qwen2"], "baselines/span_short", asked=[dataclasses.replace(world, items=(leaking,))])


def test_a_suite_without_a_window_has_no_immediate_regime(loaded):
    with pytest.raises(LabError, match=r"no window.*use regime=delayed"):
        rows(loaded["qwen2"], "baselines/span_short", "immediate", has_window=False)


def test_an_answer_that_the_limit_cut_is_flagged_and_counted_in_the_summary(loaded):
    table = rows(loaded["qwen2"], "controls/oracle", answer_budget=2)
    cut = has_flag(table, "cut")
    assert cut.any() and (table.loc[cut, "generated_tokens"] == 2).all()
    metrics = asked_metrics(table, "episodic", 5, 1, "controls/oracle", 1.0)
    assert metrics["metrics"]["episodic"]["n_cut"] == cut.sum()
    parameters = AnswerParameters(suite="episodic", preset="controls/oracle")
    assert f"; {cut.sum()} answers cut by the limit of new tokens" in answers_in_words(parameters, metrics)
    uncut = asked_metrics(table.assign(flags="truncated"), "episodic", 5, 1, "controls/oracle", 1.0)
    assert "cut by" not in answers_in_words(parameters, uncut)


@pytest.mark.parametrize("delivery", ["text", "kv"])
def test_a_row_has_the_text_that_the_model_read_and_who_composed_the_answer(loaded, delivery):
    table = rows(loaded["qwen2"], "controls/oracle", delivery=delivery)
    facts = {fact.id: fact.text for world in worlds() for fact in world.facts}
    for row in table.to_dict("records"):
        expected = [[facts[fact_id], "teller"] for fact_id in row["shown"].split(";")]
        assert json.loads(row["read"]) == [*expected, [row["question"], "asker"]]
        assert delivery == "kv" or "\n".join(text for text, _ in json.loads(row["read"])) in row["prompt"]
    assert set(table["composed_by"]) == {"model"}
    preset = load_preset("controls/oracle", {"delivery": delivery, "control": "empty"})
    hidden = answer(loaded["qwen2"], suite(), worlds(), preset.method(loaded["qwen2"], preset.settings))
    assert [json.loads(read) for read in hidden["read"]] == [[[question, "asker"]] for question in hidden["question"]]


class Counted(Method):
    """A method with a number of its own: of how many passages it chose."""

    columns: ClassVar = {"test": ("held",)}

    def open(self, traces, questions=()):
        return lambda query: Retrieved(tuple(traces[:1]), columns={"held": len(traces)})


def test_the_numbers_of_a_method_s_own_reach_its_rows(loaded):
    table = answer(loaded["qwen2"], suite(), worlds(), Counted(loaded["qwen2"], Counted.Settings()))
    assert table["held"].tolist() == [len(world.facts) for world in worlds() for _ in world.items]


def test_a_ranking_is_worth_the_gold_facts_and_the_answers_among_its_first():
    ranking = [Trace("w", str(number), f"Said {number}.") for number in range(30)]
    item = Item("q", "w", "What?", ("said 1", "Said 4!"), ("4", "1", "19"), "kind")
    scores = score_ranking(ranking, item)
    due = {"recall_1": 0, "recall_2": 1 / 3, "recall_3": 1 / 3, "recall_5": 2 / 3, "recall_10": 2 / 3, "recall_20": 1, "all_gold_5": 0}
    assert scores == due | {"answer_recall_1": 0, "answer_recall_5": 1}
    two = score_ranking(ranking, replace(item, gold_facts=("4", "1")))
    assert two["all_gold_5"] == 1 and two["recall_5"] == 1 and list(two) == list(RANKING_COLUMNS)
    again = score_ranking(ranking, replace(item, gold_facts=("25",), retold={"0": "25"}))
    assert again["recall_1"] == again["all_gold_5"] == 1
    turned = score_ranking(ranking[::-1], item)
    assert turned["recall_20"] == 1 / 3 and turned["answer_recall_5"] == 0
    for nothing in (score_ranking(None, item), score_ranking(ranking, replace(item, gold_facts=()))):
        assert all(map(np.isnan, nothing.values()))


def test_an_answer_is_found_word_for_word_and_not_inside_a_word():
    ranking = [Trace("w", "a", "The Danish crew left at 5 p.m.")]
    assert [answer_recall(ranking, (text,), 1) for text in ("the Danish Crew", "5 pm", "Dan", "crew at", "", "?")] == [1, 1, 0, 0, 0, 0]
    assert answer_recall(ranking, (), 1) == answer_recall(ranking[:0], ("crew",), 1) == 0

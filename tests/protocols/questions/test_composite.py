"""A composite of two episodic memories reads two stores: which is whose, what an empty one leaves, which part comes first."""

import pytest

from hippo_core.errors import LabError
from hippo_core.methods.composite import Composite, CompositeSettings
from hippo_core.protocols.questions import run
from hippo_core.store import store_path
from tests.protocols.questions.conftest import SESSION

FULL, HALF, NOTHING = "memory/hei_nw", "memory/hei_nw_gated", "ablations/no_writes"
ASKED = ["pred", "shown", "recall_1", "recall_5", "first_logprob"]


@pytest.fixture(scope="module")
def bench(benches):
    return benches("episodic")


@pytest.fixture(scope="module")
def ask(bench):
    """The rows of a composite of these parts, none of which says how sure it is, on the stores that other presets taught, or their own."""

    def asking(parts, stores=None, regime="delayed", **settings):
        composite = CompositeSettings(**{"delivery": "kv", "parts": parts} | settings)
        method = Composite.with_settings(composite)(bench.lm, composite)
        for part in method.parts.values():
            part.components.confidence = None
        files = {name: store_path(bench.taught((stores or parts)[name])[0], SESSION, "hei_nw") for name in parts}
        return run.test(method, bench.suite, bench.worlds, regime, files)

    return asking


def test_the_parts_read_their_own_stores_and_the_first_comes_first(bench, ask):
    full, half = bench.ask(FULL), bench.ask(HALF)
    assert not full["shown"].equals(half["shown"])
    both, turned = ask({"a": FULL, "b": HALF}), ask({"b": HALF, "a": FULL})
    assert both["pred"].equals(full["pred"]) and both["shown"].equals(full["shown"])
    assert turned["shown"].equals(half["shown"]) and not turned["shown"].equals(both["shown"])
    assert both["store_size"].tolist() == (full["store_size"] + half["store_size"]).tolist()
    swapped = ask({"a": FULL, "b": HALF}, {"a": HALF, "b": FULL})
    assert swapped["shown"].equals(half["shown"]) and swapped["pred"].equals(half["pred"])


def test_an_empty_store_leaves_what_the_other_holds(bench, ask):
    both = ask({"a": NOTHING, "b": FULL}, k=2)
    alone = bench.ask(FULL, k=2)
    assert both[ASKED].equals(alone[ASKED]) and both["store_written"].all()
    neither = ask({"a": FULL, "b": HALF}, {"a": NOTHING, "b": NOTHING})
    assert neither["pred"].tolist() == bench.plain["pred"].tolist() and not neither["store_written"].any()


def test_what_both_hold_counts_once_and_costs_twice(bench, ask):
    both, alone = ask({"a": FULL, "b": "memory/hei_nw_text"}, k=3), bench.ask(FULL, k=3)
    assert both[[*ASKED, "recall_3", "follows_store"]].equals(alone[[*ASKED, "recall_3", "follows_store"]])
    assert both["store_size"].tolist() == (2 * alone["store_size"]).tolist()
    texts = both["recalled_texts"].str.count(r"\[\"")
    assert texts.tolist() == alone["recalled_texts"].str.count(r"\[\"").tolist()


def test_a_control_chooses_among_the_facts_of_all_stores_each_once(bench, ask):
    oracle, floor = (ask({"a": FULL, "b": HALF}, control=control, k=3) for control in ("oracle", "random"))
    assert (oracle["n_shown"] == 1).all() and (oracle["found"] == 1).all()
    assert (floor["n_shown"] == 3).all() and all(len(set(shown.split(";"))) == 3 for shown in floor["shown"])
    assert ask({"a": FULL, "b": HALF}, control="empty")["pred"].tolist() == bench.plain["pred"].tolist()


def test_a_store_of_another_memory_is_refused_by_the_part_that_it_is_given_to(ask):
    with pytest.raises(LabError, match="was written with another model or memory"):
        ask({"a": FULL, "b": HALF}, {"a": FULL, "b": "ablations/no_sparsity"})


def test_asleep_is_what_every_part_slept(bench, ask, tmp_path):
    file = store_path(bench.taught(FULL)[0], SESSION, "hei_nw")
    run.replay(bench.method(FULL), file, tmp_path)
    composite = CompositeSettings(delivery="kv", parts={"a": FULL, "b": HALF})
    method, slept = Composite.with_settings(composite)(bench.lm, composite), store_path(tmp_path, SESSION, "hei_nw")
    for stores, due in (({"a": slept, "b": file}, (0.0, 0.5)), ({"a": slept, "b": slept}, (1.0, 0.0))):
        rows = run.test(method, bench.suite, bench.worlds, "after_sleep", stores)
        assert {*zip(rows["replayed"], rows["replay_cycles_missing"], strict=True)} == {due}

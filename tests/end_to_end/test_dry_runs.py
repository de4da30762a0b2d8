"""Every baseline and control on two suites, and every suite under one method of each kind: in both regimes, five items each, on the model
in git, the whole path in one process."""

from itertools import product

import pytest

from hippo_core.evaluation.run import COLUMNS, answer
from hippo_core.methods.composite import Composite
from hippo_core.methods.presets import load_preset, preset_names
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.scores import check_rows
from hippo_core.suites import drawn_suites, get_suite
from hippo_core.suites.draw import worlds

UNTAUGHT = [
    preset
    for preset in map(load_preset, preset_names())
    if not preset.method.weights
    and not preset.settings.requires
    and not issubclass(preset.method, Composite)  # which reads its parts' stores
]
ALL = ("episodic", "mixed")  # suites for every method; on the others the same calls
EACH_KIND = {f"baselines/{name}" for name in ("core", "span_short", "longctx", "rag_bm25")} | {"controls/oracle", "controls/random_facts"}
CASES = [
    (suite, preset.name, regime)
    for suite, preset, regime in product(drawn_suites(), UNTAUGHT, ("immediate", "delayed"))
    if (regime == "delayed" or (not preset.method.ignores_window and get_suite(suite).has_window))
    and (suite in ALL or preset.name in EACH_KIND)
]


@pytest.fixture(scope="module")
def lm():
    return load(load_spec("hippo-tiny"), threads=1)


def asked(lm, suite, some, name, regime="delayed", **more):
    preset = load_preset(name)
    return answer(lm, get_suite(suite), some, preset.method(lm, preset.settings), regime, **more)


@pytest.mark.parametrize(("suite", "preset", "regime"), CASES)
def test_a_dry_run_gives_a_whole_table(lm, suite, preset, regime):
    five = list(worlds(suite, "default", 5, 1337, "test", lm.spec.context_limit))
    rows = asked(lm, suite, five, preset, regime)
    assert tuple(rows.columns) == (*COLUMNS, *load_preset(preset).method.columns.get("test", ()))
    assert len(rows) == 5
    assert rows["score"].between(0, 1).all()
    assert (rows["em_raw"] <= rows["em_norm"]).all()
    assert (rows["prompt_tokens"] <= lm.spec.context_limit).all()
    check_rows(get_suite(suite), five, rows)


def test_a_batch_of_one_answers_like_a_batch_of_many(lm):
    some = list(worlds("episodic", "default", 20, 1337, "val", lm.spec.context_limit))
    many, single = (asked(lm, "episodic", some, "baselines/longctx", batch_size=size) for size in (20, 1))
    assert many["pred"].tolist() == single["pred"].tolist()


def test_capacity_really_drops_the_gold_fact(lm):
    some = list(worlds("episodic_capacity", "default", 10, 1337, "val", lm.spec.context_limit))
    rows = asked(lm, "episodic_capacity", some, "baselines/span_short", "immediate")
    golds = [item.gold_facts[0] for world in some for item in world.items]
    assert (rows["n_dropped"] > 0).all()
    assert not any(gold in shown.split(";") for gold, shown in zip(golds, rows["shown"], strict=True))


def test_a_model_that_is_cut_off_from_its_facts_would_be_noticed(lm):
    some = list(worlds("episodic", "default", 30, 1337, "val", lm.spec.context_limit))
    informed, alone = (asked(lm, "episodic", some, preset) for preset in ("controls/oracle", "baselines/span_short"))
    assert informed["score"].mean() >= 0.8
    assert alone["score"].mean() <= alone["chance"].mean() + 0.1

"""What rows come to: damage recovered, what is kept along severity, its area, and what a probe must show to be admitted."""

import math

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.protocols.cache.names import TRACE_PROBES
from hippo_core.protocols.cache.parameters import CacheParameters
from hippo_core.protocols.cache.report import in_words, perplexities, sections
from hippo_core.protocols.cache.table import admitted, auc, best_heuristic, kept, recovered, regression, task_metrics
from hippo_core.results.criteria.tables import TableRows
from tests.protocols.cache.conftest import measured


def test_a_public_text_that_is_not_there_is_missed_before_a_kernel_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("HIPPO_DATA", str(tmp_path))
    for task in ("sst2", "wikitext2"):
        with pytest.raises(LabError, match=f"^{task}.* missing .*set HIPPO_DATA"):
            load_experiment("cache").check({"tasks": ["text", task]}, "a grid")


@pytest.fixture
def rows():
    worst = {("clean", "none"): 1.0, ("clean", "clipping"): 0.9, ("gaussian", "none"): 0.2, ("gaussian", "clipping"): 0.0}
    half = measured({("gaussian", "none"): 0.6, ("gaussian", "clipping"): 0.8}).assign(severity=0.5)
    return pd.concat([measured(worst), half], ignore_index=True).assign(task="needle")


def test_recovered_is_the_share_of_the_damage_that_is_gone(rows):
    table = recovered(rows).set_index("severity")
    assert table.loc[0.5, "recovered"] == pytest.approx(0.5) and table.loc[1.0, "recovered"] == pytest.approx(-0.25)
    assert table.loc[0.5, "low"] < 0.5 < table.loc[0.5, "high"]
    assert table.loc[0.5, "lost"] == pytest.approx(0.4)


def test_where_nothing_is_lost_nothing_can_be_recovered(rows):
    rows.loc[rows["kind"] == "gaussian", "score"] = rows.loc[rows["kind"] == "clean", "score"].iloc[0]
    assert recovered(rows.assign(score=1.0))["recovered"].isna().all()
    assert recovered(rows.assign(score=1.0 - 1e-6 * (rows["kind"] != "clean")))["recovered"].isna().all()  # rounding is no damage


def test_the_area_is_that_below_what_is_kept(rows):
    curves = kept(rows)
    start = curves[curves["severity"] == 0].set_index("defence")["kept"]
    assert start.to_dict() == pytest.approx({"none": 1.0, "clipping": 0.9})  # a defence may harm a whole cache
    areas = auc(curves).set_index("defence")["auc"]
    assert areas["none"] == pytest.approx((1 + 0.6) / 4 + (0.6 + 0.2) / 4)
    assert best_heuristic(auc(curves)) == "clipping" and best_heuristic(auc(kept(rows.assign(score=0.0)))) == ""
    chance = kept(rows.assign(chance=0.5)).set_index(["defence", "severity"])["kept"]
    assert chance["none", 0.5] == pytest.approx(0.2)


def test_the_perplexity_is_that_of_all_scored_tokens_together(rows):
    metrics = task_metrics(rows.assign(task="wikitext2"))
    assert {line["defence"]: line["ppl"] for line in metrics["ppl_clean"]} == pytest.approx(
        {"none": math.exp(1.0), "clipping": math.exp(1.1)}
    )
    worst = next(line for line in metrics["ppl_corrupted"] if line["severity"] == 1 and line["defence"] == "none")
    assert worst["ppl"] == pytest.approx(math.exp(1.8)) and not task_metrics(rows)["ppl_clean"]
    assert perplexities(metrics).set_index("defence").loc["no defence", "gaussian 1"] == "6.05"
    assert metrics["overhead"]["none"] == {"repair_ms": 1, "kept_bytes": 2000, "tokens_per_s": 50, "peak_mb": 300, "gpu_peak_mb": None}


def test_a_probe_is_admitted_where_it_can_show_damage(rows):
    assert admitted(rows)["needle"]["admitted"]
    assert not admitted(rows.assign(chance=0.9))["needle"]["admitted"]
    assert not admitted(rows[(rows["kind"] == "clean") | (rows["defence"] == "clipping")].assign(score=1.0, defence="none"))["needle"][
        "admitted"
    ]


def test_a_defence_that_harms_a_clean_cache_is_charged(rows):
    assert regression(rows)["needle"]["clipping"]["score"] == pytest.approx(0.1)


def test_what_is_said_and_drawn_is_of_the_rows(rows):
    table = TableRows("cache", "measure", "probe", "cluster", rows, ("score",), ("model", "seed"))
    curves, damage, costs = sections([table])
    assert curves.figure and "clipping" in curves.table["score kept"].tolist()
    assert [text.partition(" ")[0] for text in damage.table["clipping"]] == ["−0.25", "+0.50"]
    assert costs.table["needle, score lost"].tolist() == [0, 0.1]
    assert "nothing right" in in_words(CacheParameters(), {"tasks": task_metrics(rows.assign(score=0.0))})
    assert "keeps 40%" in in_words(CacheParameters(), {"tasks": task_metrics(rows)})


def test_a_training_is_said_in_words():
    examined = {"clean": 0.01, "gaussian": 1.0, "gaussian bare": 2.0, "bitflip": 3.0, "bitflip bare": 2.0}
    training = {"examined": examined, "numbers": 1234, "steps": 9}
    sentence = in_words(CacheParameters(step="train"), {"training": training})
    assert "1,234 numbers, 9 steps" in sentence and "2.00 nats" in sentence and "nearer for 1 of 2" in sentence


def test_a_cell_rests_on_the_defences_that_it_measures():
    experiment = load_experiment("cache")

    def modules(*names, tasks=("text",)):
        return experiment.plan(experiment.check({"defences": list(names), "tasks": list(tasks)}, "here")).modules

    folder = "hippo_core.protocols.cache.defences"
    assert modules("reset", "ecc_equal") == (experiment.run, f"{folder}.filters", f"{folder}.ecc")
    assert {TRACE_PROBES, "hippo_core.methods.episodic"} <= set(modules("reset", tasks=("traces",)))
    with pytest.raises(LabError, match="unknown defence 'reste'"):
        modules("reste")

"""The files that the protocol asks for: all from records, none where one is missing; what figures show is what they were given."""

import json

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.files import root, write_json
from hippo_core.protocols.cache import artifacts
from hippo_core.protocols.cache import figures as cache
from hippo_core.protocols.cache import report as protocol
from hippo_core.protocols.cache.protocol import CACHE
from hippo_core.protocols.cache.table import TRAIN, task_metrics
from tests.protocols.cache.conftest import measured

SCORES = {("clean", "none"): 1.0, ("clean", "clipping"): 1.0, ("gaussian", "none"): 0.2, ("gaussian", "clipping"): 0.6}
SCORES |= {("clean", "learned"): 1.0, ("gaussian", "learned"): 0.4}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run whose records are made up, with what their cells would have written."""
    record = tmp_path / "run" / "r1"
    stability = {"logit_sensitivity": [{"delta": 0.0, "defence": "none", "drift": 0.0, "drift_from_own_clean": 0.0}]}
    line = {"task": "text", "kind": "gaussian", "severity": 1.0, "defence": "clipping", "auc": 0.9}
    detection = {"false_alarms": [0.01, 0.5], "lines": [{**line, "recall": [0.75, 1.0], "recall_at_1_percent": 0.75}]}
    write_json(record / "stability_metrics.json", {**stability, "amplification_map": {"none": [[1.0, 2.0]]}})
    write_json(record / "detection_metrics.json", detection)
    numbers = dict.fromkeys((name for name in TRAIN.columns if name not in ("number", "kind")), 0.5)
    train = pd.DataFrame([{"number": 1, "kind": "gaussian", **numbers, "run_id": "made", "cell": "t1"}])
    assert set(TRAIN.columns) <= set(train)
    tables = {"measure": measured(SCORES), "train": train}
    monkeypatch.setattr(artifacts, "read_table", lambda run, name, step: tables[step])
    monkeypatch.setattr(artifacts, "records_with", lambda run, dry, name, step="measure": [record] if step in tables else [])
    monkeypatch.setattr(artifacts, "read_meta", lambda record: {"git_sha": "0123456789"})
    return tmp_path / "run", tables


def test_every_file_of_the_protocol_is_written_and_says_what_the_rows_say(run, tmp_path):
    written = {path.name for path in artifacts.write([run[0]], tmp_path / "out")}
    assert written == {
        *("task_metrics.json", "stability_metrics.json", "detection_metrics.json", "protocol_metrics.json", "train.jsonl"),
        *("eval.jsonl", "index.md"),
        *("table_main_results.tex", "table_ablation_summary.tex", "figA.png", "figB.png", "figC.png", "figD.png", "figE.png"),
    }
    page = (tmp_path / "out/index.md").read_text()
    assert "| clipping | 0.60 | 0.60 |" in page and "| no defence | 0.20 | 0.20 |" in page  # whole caches are left out
    assert "| text | gaussian | 1 | 0.80 | +0.50" in page and "| clipping | 0.75 | 0.75 |" in page
    evaluated = [json.loads(line) for line in (tmp_path / "out/eval.jsonl").read_text().splitlines()]
    assert {(entry["kind"], entry["defence"]): entry["score"] for entry in evaluated} == SCORES
    step = json.loads((tmp_path / "out/train.jsonl").read_text())
    assert step["corruption"] == {"type": "gaussian", "severity": 0.5}
    assert [step[name] for name in ("loss_total", "tokens_per_sec", "peak_mb", "step_wall_sec")] == [0.5] * 4
    assert evaluated[0]["tokens_per_s"] == 50
    assert r"clipping & 1.00 & 0.80 \\" in (tmp_path / "out/table_main_results.tex").read_text()


@pytest.mark.parametrize("missing", ["train", "stability_metrics.json"])
def test_nothing_stands_in_for_what_is_missing(run, tmp_path, missing):
    folder, tables = run
    if missing == "train":
        del tables["train"]
    else:
        (folder / "r1" / missing).unlink()
    with pytest.raises(LabError, match=f"step {missing}" if missing == "train" else "is not there"):
        artifacts.write([folder], tmp_path / "out")


def test_models_are_not_mixed(run, tmp_path):
    folder, tables = run
    tables["measure"] = pd.concat([tables["measure"], measured(SCORES, model="smollm2-135m")], ignore_index=True)
    with pytest.raises(LabError, match="several models, hippo-tiny, smollm2-135m"):
        artifacts.write([folder], tmp_path / "out")


def test_cells_that_were_told_otherwise_are_ablations_and_no_part_of_the_main_table():
    harmed = {**SCORES, ("gaussian", "clipping"): 0.0}
    rows = pd.concat([measured(SCORES), measured(harmed, ood="loto_holdout_gaussian", holdout="gaussian")], ignore_index=True)
    grouped = protocol.groups(rows)
    assert [name for name, _ in grouped] == ["", "ood=loto_holdout_gaussian"]
    assert protocol.scores_kept(task_metrics(protocol.main_of(grouped))).set_index("score kept")["mean"]["clipping"] == "0.60"
    assert protocol.ablations(grouped)["kept"].tolist() == ["0.80", "0.70", "0.50", "0.70"]


def test_a_defence_that_saw_fewer_faults_is_no_part_of_the_main_table():
    few = {("clean", "none"): 1.0, ("clean", "wiener"): 1.0, ("gaussian", "none"): 0.9, ("gaussian", "wiener"): 1.0}
    rows = pd.concat([measured(SCORES), measured({**SCORES, ("bitflip", "none"): 0.1}, record="r2"), measured(few, record="r3")])
    grouped = protocol.groups(rows)
    assert [name for name, _ in grouped] == ["", "gaussian, severity=1"]
    assert "wiener" not in set(protocol.main_of(grouped)["defence"])
    assert set(protocol.main_of(grouped)["kind"]) == {"clean", "gaussian", "bitflip"}


def test_a_repair_is_ahead_where_it_brings_more_back_than_the_best_heuristic():
    scores = {**SCORES, ("clean", "wiener"): 1.0, ("gaussian", "wiener"): 1.0}
    line = protocol.margin_over_heuristic(measured(scores)).to_dict("records")[0]
    assert (line["lost"], line["clipping"]) == ("0.80", "0.50")
    assert line["learned"].startswith("0.25 (−") and line["wiener"].startswith("1.00 (+0.") and "−" not in line["wiener"]


def test_what_was_left_out_of_a_training_stands_beside_what_was_seen():
    unseen = {**SCORES, ("gaussian", "learned"): 0.2}
    axes = {"ood": "loto_holdout_gaussian", "holdout": "gaussian", "record": "r2"}
    grouped = protocol.groups(pd.concat([measured(SCORES), measured(unseen, **axes)]))
    assert protocol.left_out(grouped).to_dict("records") == [
        {"fault": "gaussian", "left out": "0.00", "seen": "+0.25", "clipping": "+0.50"}
    ]


def test_contraction_is_told_by_its_seeds():
    rows = [measured({**SCORES, ("gaussian", "learned"): 0.6 if weight else 0.4}, contraction=weight, seed=seed, record=f"{weight}{seed}")
            for weight in (0.0, 0.5) for seed in (1, 2)]  # fmt: skip
    lines = protocol.contraction(protocol.groups(pd.concat(rows))).set_index("contraction")
    assert lines["seed 2"].to_dict() == {"0.5": "0.80", "0": "0.70"} and lines["recovered"]["0"] == "+0.25"


def test_bits_are_told_apart_by_their_numbers():
    scores = {("clean", "none"): 1.0, ("bitflip of bit 14", "none"): 0.2, ("bitflip of bit 2", "none"): 1.0}
    lost = protocol.bits_lost(protocol.groups(measured(scores, bits="each")))
    assert lost.to_dict("records") == [
        {"stored": "bfloat16", "bit": bit, "lost": pytest.approx(cost)} for bit, cost in ((14, 0.8), (2, 0.0))
    ]
    assert protocol.bits_in_short(lost)["bits that cost .01 nats or more"].tolist() == ["14"]


def test_what_is_gone_is_said_with_what_is_kept():
    lines = [{"way": "knorm", "severity": severity, "removed": severity, "task": "text", "score": score, "chance": 0.0}
             for severity, score in ((0.0, 0.8), (0.5, 0.2))]  # fmt: skip
    assert protocol.removed_bits(pd.DataFrame(lines))["severity 0.5"].tolist() == ["0.500 → 0.25"]


def test_a_name_of_what_is_left_out_says_what_is_measured():
    parameters = CACHE.check({"ood": "loto_holdout_bitflip", "defences": ["learned"]}, "here")
    assert (parameters.kinds, parameters.holdout) == (["bitflip"], "bitflip")
    assert CACHE.plan(parameters).needs["repair"].parameters["holdout"] == "bitflip"
    with pytest.raises(LabError, match="says kinds="):
        CACHE.check({"ood": "loto_holdout_bitflip", "kinds": ["targeted"]}, "here")


@pytest.mark.parametrize("name", ["cache", "cache-learned", "cache-real"])
def test_the_reference_says_what_the_files_beside_it_say(name):
    folder = root() / "reports/reference" / name
    assert (folder / "index.md").read_text(encoding="utf-8") == artifacts.page(folder)


MANY = ["none", "reset", "masking", "smoothing", "clipping", "detect_clear", "rms_outlier", "median", "learned", "wiener", "episodic"]


def curves(defences=("none", "clipping"), kinds=("targeted", "gaussian")):
    return pd.DataFrame(
        {"kind": kind, "defence": name, "task": task, "severity": severity, "kept": 1 - severity / (1 + index)}
        for kind in kinds
        for index, name in enumerate(defences)
        for task in ("text", "needle")
        for severity in (0.0, 0.5, 1.0)
    )


def test_the_faults_stand_in_their_order_and_the_title_is_about_damaged_caches():
    figure = cache.robustness(curves())
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["gaussian", "targeted"]
    assert "keep 25%" in figure.texts[0].get_text() and "clipping 62%" in figure.texts[0].get_text()


def test_of_many_defences_those_that_matter_have_their_colours():
    figure = cache.robustness(curves(MANY))
    lines = {line.get_label(): line for line in figure.axes[0].get_lines() if not line.get_label().startswith("_")}
    assert set(lines) == {cache.STYLES[name].label for name in ("none", "clipping", "learned", "wiener", "episodic")} | {"the others"}
    assert len(figure.axes[0].get_lines()) == len(MANY) + 2  # two levels
    assert len(figure.legends[0].get_texts()) == 6


@pytest.mark.parametrize("draw", ["cost", "robustness"])
def test_a_legend_lies_within_the_figure(draw):
    rows = curves(MANY).assign(repair_ms=1.0)
    figure = cache.cost(rows, rows) if draw == "cost" else cache.robustness(rows)
    figure.canvas.draw()
    legends = [*figure.legends, *(own for panel in figure.axes if (own := panel.get_legend()))]
    assert legends
    for legend in legends:
        box = legend.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0


def test_the_cost_of_a_defence_is_what_it_takes_from_whole_caches():
    harming = curves(MANY[:3]).assign(repair_ms=1.0)
    harming.loc[(harming["defence"] == "masking") & (harming["severity"] == 0), "kept"] = 0.6
    heights = {line.get_label(): line.get_ydata()[0] for line in cache.cost(harming, harming).axes[0].get_lines()}
    assert (heights["masking (told)"], heights["reset (told)"]) == (pytest.approx(0.4), 0)
    unknown = harming.assign(kept=float("nan"))  # a model that answers nothing right has nothing to lose
    assert cache.cost(unknown, unknown).axes and cache.robustness(unknown).axes

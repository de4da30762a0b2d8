"""The best rag is the one of validation worlds, wherever a report names it, also where test worlds would say otherwise."""

import json

import pytest

from hippo_core.protocols.base.reporting import write_report
from hippo_core.protocols.questions.report.runs import load_run
from tests.results import fake_records
from tests.results.invented import RAGS

BEST = {"val": "baselines/rag_hybrid", "test": "baselines/rag_dense"}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The report of a run whose splits disagree: half of the answers of the best are right, a fifth of the others'."""
    folder = tmp_path_factory.mktemp("executed") / "torn"
    for split, best in BEST.items():
        for preset in (*RAGS, *(["baselines/span_short", "memory/hei_nw"] if split == "test" else [])):
            rows = fake_records.make_rows("episodic", preset, "delayed", n=80, split=split)
            right = (rows["idx"] % (2 if preset == best else 5) == 0).astype(float)
            fake_records.add_record(folder, "episodic", preset, "delayed", n=80, split=split, rows=rows.assign(score=right, em_norm=right))
    return write_report(folder, tmp_path_factory.mktemp("reports")).parent


def test_the_thresholds_of_unknown_are_those_of_validation_worlds(tmp_path):
    """On the validation worlds a margin of 1 tells what has no answer, on the test worlds only one of 5 would."""
    for split, margin, n in (("val", 1.0, 40), ("test", 5.0, 20)):
        rows = fake_records.make_rows("episodic", "memory/hei_nw", "delayed", n=n, split=split)
        none = rows["idx"] % 2 == 0
        columns = {"score_forced": (~none).astype(float), "unknown_margin": margin + none.map({True: 1.0, False: -1.0}), "evidence": 1.0}
        rows = rows.assign(answer=rows["answer"].mask(none, "unknown"), score=columns["score_forced"], abstained=0.0, **columns)
        fake_records.add_record(tmp_path / "torn", "episodic", "memory/hei_nw", "delayed", n=n, split=split, rows=rows)
    run = load_run(tmp_path / "torn")
    for rows in (run.rows, run.validation):
        assert rows["calibrated_on"].str.endswith("20 answerable and 20 unanswerable validation questions").all()
    assert run.validation["score_calibrated"].eq(1).all()
    assert run.rows["abstained_calibrated"].eq(1).all()  # of the test worlds' margins all are above what validation chose


def test_a_verdict_is_one_over_the_choice_of_validation_worlds(out):
    by_id = {criterion["id"]: criterion for criterion in json.loads((out / "criteria.json").read_text())["criteria"]}
    verdict = by_id["rag_delayed/episodic"]
    assert "best_rag is baselines/rag_hybrid, chosen on validation worlds" in verdict["reason"]
    assert verdict["mean_a"] == 0.2


def test_the_paired_comparisons_are_with_that_choice(out):
    paired = (out / "episodic/summary.md").read_text(encoding="utf-8").split("## Paired comparisons")[1].split("\n## ")[0]
    references = {line.split("|")[2].strip() for line in paired.splitlines() if line.startswith("| ")}
    assert references == {"against", "span_short", "rag_hybrid"}
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "best rag on validation worlds" in page and "best rag on these test rows" not in page

"""The contract of a meaningful run: each clause fires where its cause is planted, and on nothing else."""

import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from hippo_core.dashboard.ablate import AblatePanel
from hippo_core.dashboard.compare import ComparePanel
from hippo_core.lab.cli.commands import app
from hippo_core.lab.grid import summary
from hippo_core.protocols.questions.protocol import ANSWER
from hippo_core.protocols.questions.report.contract import is_invalid, marked, valid, violation_messages, violations
from hippo_core.results.report import write_report
from tests.results.fake_records import add_record, make_rows

MEMORY, EMPTY = "memory/hei_nw", "controls/empty_store"


def cell(condition, right, regime="delayed", n=10, **columns):
    """The rows of a record: so many of ten answers are right."""
    scores = [float(number < right * n / 10) for number in range(n)]
    about = {"record": f"{condition} {regime}", "condition": condition, "preset": condition.split(" (")[0], "regime": regime}
    complete = {"setting": "episodic", "split": "test", "seed": 1337, "score": scores, "chance": 0.1, "refusal": 0.0, **about}
    return pd.DataFrame(complete | columns, index=range(n))


def memory(right=9, regime="delayed", condition=MEMORY, **columns):
    return cell(condition, right, regime, **({"store_written": 1.0, "requests": 1.0, "replayed": 1.0} | columns))


GOOD = {
    "core": cell("baselines/core", 1),
    "memory": memory(),
    "empty": cell(EMPTY, 0, store_written=1.0, requests=1.0),
    "slept": memory(regime="after_sleep"),
    "ungated": memory(condition="memory/sgc_rss (relational.gate.enabled=false)", n=100),
    "gated": memory(condition="memory/sgc_rss", n=100),
}


def broken(**changed):
    """What is broken in a run of which some cells are others, or None and so left out."""
    return violations(pd.concat([table for table in (GOOD | changed).values() if table is not None], ignore_index=True))


def test_a_good_run_keeps_all_clauses():
    assert broken(longer=memory(regime="after_sleep", condition=f"{MEMORY} (replay.cycles=3)")) == []


@pytest.mark.parametrize(
    ("changed", "record", "why"),
    [
        ({"core": cell("baselines/core", 4)}, "baselines/core delayed", "without the facts 0.40"),
        ({"core": cell("baselines/core", 1, score=float("nan"))}, "baselines/core delayed", "10 of its answers have no score"),
        ({"core": cell("baselines/core", 1, score=float("inf"))}, "baselines/core delayed", "10 of its answers have no score"),
        ({"memory": memory(store_written=0.0)}, "memory/hei_nw delayed", "its store holds nothing"),
        ({"memory": memory(requests=0.0)}, "memory/hei_nw delayed", "was never asked"),
        ({"memory": memory(refusal=0.6)}, "memory/hei_nw delayed", "refuses 0.60"),
        ({"slept": memory(regime="after_sleep", replayed=0.0)}, "memory/hei_nw after_sleep", "nothing was replayed"),
        ({"memory": None}, "memory/hei_nw after_sleep", "no score of it before the replay"),
        ({"empty": cell(EMPTY, 8, store_written=1.0, requests=1.0)}, "memory/hei_nw delayed", "loses only 0.10"),
        ({"gated": memory(8, condition="memory/sgc_rss", n=100)}, "memory/sgc_rss delayed", "its gate costs 0.100"),
    ],
)
def test_each_clause_fires_where_its_cause_is_planted(changed, record, why):
    [violation] = broken(**changed)
    assert violation.record == record and why in violation.why


def test_a_gate_is_not_judged_on_a_few_items_nor_a_control_or_what_is_switched_off_at_all():
    few = {name: GOOD[name].head(50) for name in ("ungated", "gated")}
    assert broken(**(few | {"gated": few["gated"].assign(score=0.9)})) == []
    for mark in ("control=shuffled", "minilm, memory.runtime.enable_writes=false", "traces=off"):
        assert broken(other=cell(f"memory/hei_nw ({mark})", 0, store_written=0.0, requests=0.0, refusal=1.0)) == []
    assert broken(other=memory(regime="after_sleep", condition="memory/smpd (replay.enabled=false)", replayed=0.0)) == []


def test_an_invalid_cell_says_so_in_its_condition_and_is_left_out_of_what_is_judged():
    rows = pd.concat([GOOD["memory"].assign(refusal=1.0), GOOD["empty"]], ignore_index=True)
    clauses = violations(rows)
    after = marked(rows, clauses)
    assert set(after["condition"]) == {"memory/hei_nw (INVALID)", EMPTY}
    assert set(valid(after)["condition"]) == {EMPTY} and is_invalid("memory/smpd (k=3, INVALID)") and not is_invalid(MEMORY)
    assert violation_messages(clauses) == ["INVALID: hei_nw on episodic: the model refuses 1.00 of the questions."]


@pytest.fixture(scope="module")
def broken_run(tmp_path_factory):
    """A run whose memory was never asked, and its report."""
    folder = tmp_path_factory.mktemp("broken")
    run, rows = folder / "executed/trial", make_rows("episodic", MEMORY, "delayed")
    add_record(run, "episodic", MEMORY, "delayed", rows=rows.assign(store_written=1.0, requests=0.0))
    add_record(run, "episodic", MEMORY, "delayed", overrides=("k=3",), rows=rows.assign(store_written=1.0, requests=1.0))
    for preset in ("baselines/rag_bm25", "baselines/span_short"):
        add_record(run, "episodic", preset, "delayed")
    write_report(run, folder / "reports/trial", (), ANSWER.pages)
    return run


WHY = "INVALID: hei_nw on episodic: its memory was never asked."


def test_a_broken_clause_marks_every_table_of_a_report_and_the_end_of_its_grid(broken_run, monkeypatch):
    out = broken_run.parents[1] / "reports/trial"
    for page in ("index.md", "episodic/summary.md"):
        lines = (out / page).read_text(encoding="utf-8").splitlines()
        named = [line for line in lines if re.search(r"\| *hei_nw(?! \(k=3)", line)]
        assert named and [line for line in named if "hei_nw (INVALID)" not in line] == [] and WHY in "\n".join(lines)
    assert "memory/hei_nw (INVALID)" in (out / "rows.csv").read_text()
    monkeypatch.setattr(summary, "root", lambda: broken_run.parents[1])
    assert summary.invalid("trial") == [WHY] and summary.invalid("nothing") == []


def test_a_broken_clause_is_said_where_two_conditions_are_compared(broken_run):
    result = CliRunner().invoke(app, ["compare", f"{broken_run}:memory/hei_nw", f"{broken_run}:rag_bm25"])
    assert result.exit_code == 0 and result.stdout.startswith(WHY)
    asked = CliRunner().invoke(app, ["compare", f"{broken_run}:memory/hei_nw (k=3)", f"{broken_run}:rag_bm25"])
    assert asked.exit_code == 0 and "INVALID" not in asked.stdout
    panel = ComparePanel(broken_run.parent, here=broken_run)
    panel.select("trial", "episodic", MEMORY, "baselines/rag_bm25")
    assert WHY in panel.html()
    panel.select("trial", "episodic", f"{MEMORY} (k=3)", "baselines/rag_bm25")
    assert "INVALID" not in panel.html()
    assert WHY in AblatePanel(broken_run.parent).html()

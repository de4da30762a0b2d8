"""Ablate: every ablation of a memory against it, answers beside recall; choosing one says which; what is missing is started."""

import asyncio

import pytest

from hippo_core.dashboard.ablate import AblatePanel, ablations_of
from hippo_core.dashboard.compare import ComparePanel
from hippo_core.dashboard.index import read_index
from hippo_core.errors import LabError
from hippo_core.protocols.questions.report.runs import load_run
from hippo_core.results import summaries
from tests.dashboard.conftest import MEMORY, SPARSE, add

KS = [f"{MEMORY} (k={k})" for k in (1, 3, 5)]


@pytest.fixture
def panel(runs):
    shown = AblatePanel(runs)
    shown.fill(wanted={"run": "whole", "suite": "episodic"})
    return shown


def rows_by_id(shown):
    return {row["id"]: row for row in shown.table.rows}


def test_ablations_extend_a_memory_or_override_it():
    names = [MEMORY, *KS, SPARSE, "memory/hei_nw_gated", "ablations/gate_random (minilm)", "ablations/of_another_machine"]
    others = ["baselines/rag_bm25", "controls/empty_store", f"{MEMORY} (control=shuffled)"]
    assert ablations_of(MEMORY, [*names, *others]) == names[1:]
    assert ablations_of("memory/hei_nw_gated", [*names, *others]) == ["ablations/gate_random (minilm)", "ablations/of_another_machine"]


def test_each_against_the_full_memory_as_the_report_counts(panel, runs):
    rows = load_run(runs / "whole").rows
    assert panel["full"] == MEMORY and set(rows_by_id(panel)) == {SPARSE, *KS}
    for name, row in rows_by_id(panel).items():
        due = summaries.pair(rows, (name, "delayed"), (MEMORY, "delayed"))
        assert [row["answers"][key] for key in ("value", "low", "high")] == [due.difference, due.low, due.high]
        comparison = summaries.pair(rows, (name, "delayed"), (MEMORY, "delayed"), "found")
        assert row["recall"]["value"] == comparison.difference != due.difference or name == KS[0]
        assert (row["n"]["value"], row["score"]["value"]) == (due.n, due.mean_a)
    assert "hei_nw: 0.90 of 100 questions answered right, the right fact found for 1.00" in panel._head.value


def test_another_full_memory_turns_the_difference_round(panel):
    before = rows_by_id(panel)[KS[2]]["answers"]["value"]
    panel.fields["full"].value = KS[2]
    assert rows_by_id(panel)[MEMORY]["answers"]["value"] == -before > 0


def test_a_chosen_row_opens_the_comparison(runs):
    compare, chosen = ComparePanel(runs), []

    def choose(**names):
        chosen.append(names)
        compare.select(**names)

    shown = AblatePanel(runs, choose)
    shown.fill(wanted={"run": "whole", "suite": "episodic"})
    difference = rows_by_id(shown)[SPARSE]["answers"]["value"]
    for _ in range(2):
        shown.table.selected = SPARSE
    assert chosen == [{"run": "whole", "suite": "episodic", "regime": "delayed", "a": SPARSE, "b": MEMORY}] * 2
    assert compare.result.difference == difference == pytest.approx(-0.3)


def test_a_sweep_is_drawn_of_its_own_records(panel, runs):
    [(label, _)] = panel.sweep.options
    assert label.startswith("k, delayed") and "data:image/png;base64," in panel._picture.value
    assert panel._picture.value in panel.html() and "no_sparsity" in panel.html()


@pytest.mark.parametrize(
    ("run", "message"),
    [("alone", "no memory with an ablation"), ("empty", "no answers yet"), ("damaged", "meta.json was changed"), ("torn", "no memory")],
)
def test_a_run_that_cannot_be_shown_is_a_line(panel, run, message):
    panel.fields["run"].value = run
    assert message in panel._head.value and panel._head.value.count("<p") == 1
    assert panel.table.rows == [] and panel._picture.value == "" and message in panel.html()


def test_what_is_missing_is_started_and_read_when_it_ends(tmp_path):
    """The grid is played: it adds a record, and its view ends."""
    started = []

    def start(grid, run_id):
        started.append((grid, run_id))
        view = ComparePanel(tmp_path / "none").widget

        async def work():
            await asyncio.sleep(0)
            add(tmp_path / "proof", SPARSE, 6)

        view.following = asyncio.get_running_loop().create_task(work())
        return view

    async def play():
        add(tmp_path / "proof", MEMORY, 9)
        read_index.cache_clear()
        shown = AblatePanel(tmp_path, start=start)
        assert shown.table.rows == []
        shown.missing.click()
        [view] = shown._work.children
        await view.following
        await asyncio.sleep(0)
        assert set(rows_by_id(shown)) == {SPARSE}

    asyncio.run(asyncio.wait_for(play(), 60))
    assert started == [("proof", "proof")]


def test_a_grid_that_cannot_be_started_is_a_line(runs):
    def refuse(grid, run_id):
        raise LabError(f"a grid runs on {run_id} already")

    shown = AblatePanel(runs, start=refuse)
    shown.missing.click()
    assert "runs on" in shown._error.value and shown._work.children == ()

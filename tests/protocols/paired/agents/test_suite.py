"""A suite's agent items under conditions: rows for `compare`, no-memory beside a memory of one's own."""

from dataclasses import replace

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.run import Permissions, run_all_items, run_tasks
from hippo_core.protocols.paired.comparison import compare_conditions, run_condition
from hippo_core.protocols.paired.conditions import AGENT_SCORES, COLUMNS
from hippo_core.protocols.paired.rerun import Allowed, reproduce
from hippo_core.protocols.paired.run_files import read_run, write_run
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import read_suite
from tests.protocols.paired.agents.conftest import MODES, SMOKE

SETTINGS = RunSettings(conditions=("no-memory", "full-memory"), memory="tests.protocols.paired.agents.conftest:Notebook")


@pytest.mark.skipif(not MODES, reason="no containment here")
def test_a_memory_helps_the_scripted_agent_and_each_row_is_complete(tmp_path):
    suite = read_suite(SMOKE)
    rows = run_tasks(suite, SETTINGS, "hippo-tiny", tmp_path, Permissions(shell=True), lambda line: None)
    assert len(rows) == 2 * len(suite.items) and all(set(row) == {*COLUMNS, *AGENT_SCORES} for row in rows)
    with_memory = {row["item"] for row in rows if row["condition"] == "full-memory" and row["success"]}
    without = {row["item"] for row in rows if row["condition"] == "no-memory" and row["success"]}
    assert with_memory == {item.id for item in suite.items}, [row["error"] for row in rows]
    assert without == {item.id for item in suite.items if item.type == "command_task"}
    assert [row["place"] for row in rows] == list(range(1, len(rows) + 1))


def test_a_dry_run_runs_nothing_and_says_what_is_wrong(tmp_path):
    suite, lines = read_suite(SMOKE), []
    look = Permissions(shell=True, dry_run=True)
    assert run_all_items(suite, SETTINGS, "hippo-tiny", tmp_path / "out", look, lines.append) == []
    assert len(lines) == len(suite.items) and not (tmp_path / "out").exists()
    lost = suite.items[0].model_copy(update={"fixture": "nowhere"})
    with pytest.raises(LabError, match="nowhere is no folder"):
        run_all_items(replace(suite, items=(lost,)), SETTINGS, "hippo-tiny", tmp_path / "out", look, lines.append)


@pytest.mark.skipif(not MODES, reason="no containment here")
def test_a_run_of_agents_is_compared_and_made_again(tmp_path):
    suite, settings = read_suite(SMOKE), SETTINGS.model_copy(update={"limit": 1})
    rows = run_all_items(suite, settings, "hippo-tiny", tmp_path / "tasks", Permissions(shell=True), lambda line: None)
    run = read_run(write_run(tmp_path / "run", suite, settings, rows, {"agents": {"agent": "", "passed": []}}))
    pair = compare_conditions(run_condition(run, "no-memory"), run_condition(run, "full-memory"))
    assert (pair.gained, pair.lost) == (1, 0)
    passed = {name: result.difference for name, result in pair.metrics.items()}
    assert passed["steps_passed"] == passed["score_commands_passed"] == passed["memory_queries"] == 1
    assert passed["assertions_passed"] == 0.5 and "memory_queries_verified" not in passed and pair.cost_metrics["tokens"].n == 1
    [line] = pair.discordant.to_dict("records")
    assert line["answer"] == "success" and line["answer_b"].startswith("failed: task: score command 1")
    with pytest.raises(LabError, match="--allow-shell"):
        reproduce(run, suite, "hippo-tiny", lambda line: None)
    assert reproduce(run, suite, "hippo-tiny", lambda line: None, Allowed(shell=True, imports=True)) == []


@pytest.mark.skipif(not MODES, reason="no containment here")
def test_the_scripted_agent_builds_a_page_contained(tmp_path):
    suite = read_suite(SMOKE.with_name("agents-app"))
    first = suite.items[0].model_copy(update={"steps": suite.items[0].steps[:2]})  # all steps, not contained: test_pages.py
    only = SETTINGS.model_copy(update={"conditions": ("full-memory",)})
    [row] = run_tasks(replace(suite, items=(first,)), only, "hippo-tiny", tmp_path, Permissions(shell=True), lambda line: None)
    assert row["success"], row["error"]


@pytest.mark.skipif(not MODES, reason="no containment here")
def test_without_permission_nothing_runs(tmp_path):
    with pytest.raises(LabError, match="--allow-shell"):
        run_tasks(read_suite(SMOKE), SETTINGS, "hippo-tiny", tmp_path / "out", Permissions(), lambda line: None)
    assert not (tmp_path / "out").exists()

"""Before a grid runs, its memories answer a few validation questions; one that could show nothing is said, and the exit status follows."""

import shutil
from contextlib import nullcontext
from dataclasses import replace

import pytest

from hippo_core.lab.cli import grid_commands
from hippo_core.lab.grid.engine import RunOptions
from hippo_core.lab.grid.expand import Selection, expand
from hippo_core.lab.grid.preflight import ITEMS, Check, check_of
from hippo_core.protocols.questions.report import runs
from hippo_core.protocols.questions.report.contract import Violation
from hippo_core.results.records import run_folder


@pytest.fixture(scope="module")
def cells():
    return expand("spatial-real").cells


def test_every_memory_is_asked_in_each_setting_with_its_store_and_without(cells):
    tests = [cell for cell in check_of(cells, "checked").cells if cell.parameters.get("step") == "test"]
    asked = {
        (cell.parameters["profile"], *(override for override in cell.parameters["overrides"] if "encoder" not in override))
        for cell in tests
    }
    assert asked == {("paths_5",), ("paths_5", "control=empty"), ("explore",), ("explore", "control=empty")} and len(tests) == 4
    assert {(cell.parameters["split"], cell.parameters["n"], cell.parameters["preset"]) for cell in tests} == {
        ("val", ITEMS, "memory/smpd")
    }
    assert all(run_folder("checked") in cell.record.parents for cell in check_of(cells, "checked").cells if cell.experiment)


def test_ablations_controls_and_baselines_are_not_asked():
    plain = [
        cell for cell in expand("spatial", selection=Selection(only=("memory/*",))).cells if cell.parameters.get("profile") == "default"
    ]
    tests = [cell for cell in check_of(plain, "checked").cells if cell.parameters.get("step") == "test"]
    assert {tuple(cell.parameters["overrides"]) for cell in tests} == {("encoder=minilm",), ("encoder=minilm", "control=empty")}
    assert check_of(expand("spatial", selection=Selection(only=("baselines/*",))).cells, "checked") == Check("checked", (), 0, ())


@pytest.mark.parametrize(("why", "status"), [("its memory was never asked", 1), ("", 0)])
def test_a_broken_clause_is_said_and_fails(monkeypatch, capsys, why, status):
    ran, violations = [], [Violation("a", "memory/smpd", "spatial", why)] if why else []
    monkeypatch.setattr(grid_commands, "run", lambda status, *_: ran.extend(status.waiting) or [])
    monkeypatch.setattr(grid_commands, "supersede", lambda cells: None)
    monkeypatch.setattr(runs, "broken_clauses", lambda folder: violations)
    assert grid_commands.preflight_grid("spatial-real", "preflight-test", Selection(), RunOptions()) == status
    assert ran and (f"INVALID: smpd on spatial: {why}." in capsys.readouterr().out) == bool(why)
    shutil.rmtree(run_folder("preflight-test-preflight"))


def test_sizes_and_seeds_are_checked_once_and_a_suite_without_validation_worlds_is_said():
    grid = expand("default", selection=Selection(only=("memory/all",)))
    check = check_of(grid.cells, "checked")
    assert check.asked == 6 and {cell.parameters["seed"] for cell in check.cells} == {1337}
    one_seed = check_of(expand("default", selection=Selection(only=("memory/all",), seeds=(1337,))).cells, "checked")
    assert [cell.id for cell in one_seed.cells] == [cell.id for cell in check.cells]
    check = check_of(expand("ways").cells, "checked")
    assert (check.cells, check.asked) == ((), 0)
    assert [line.startswith("not checked: memory/smpd on folder:") and "has no val split" in line for line in check.unasked] == [True]


def test_a_suite_that_is_all_test_is_not_asked():
    memory = next(
        cell for cell in expand("semantic").cells if cell.parameters.get("preset") == "memory/sgc_rss" and cell.parameters["step"] == "test"
    )
    check = check_of([replace(memory, parameters=memory.parameters | {"suite": "twowiki", "overrides": []})], "checked")
    assert (check.cells, check.asked) == ((), 0)
    assert check.unasked == ("not checked: memory/sgc_rss on twowiki: suite twowiki has no val split: all is test",)


@pytest.mark.parametrize(
    ("name", "broken", "preflight", "begins"),
    [("default", 6, True, False), ("default", 5, True, True), ("default", 6, False, True), ("spatial-real", 2, True, True)],
)
def test_a_large_grid_whose_memories_could_all_show_nothing_is_not_begun(monkeypatch, capsys, name, broken, preflight, begins):
    ran = []

    class Begun(Exception):
        pass

    def begin(*_):
        raise Begun

    violations = [Violation(str(number), "memory/all", "mixed", "its memory was never asked") for number in range(broken)]
    monkeypatch.setattr(grid_commands, "run", lambda status, *_: ran.extend(status.waiting) or [])
    monkeypatch.setattr(grid_commands, "supersede", lambda cells: None)
    monkeypatch.setattr(grid_commands, "shared", begin)
    monkeypatch.setattr(runs, "broken_clauses", lambda folder: violations)
    given = name, "ahead-test", Selection(only=("memory/all", "memory/smpd") if name == "spatial-real" else ("memory/all",))
    with pytest.raises(Begun) if begins else nullcontext():
        assert grid_commands.run_grid(*given, RunOptions(preflight=preflight)) == 1
        assert "grid default was not begun" in capsys.readouterr().out
    assert bool(ran) == (name == "default" and preflight)  # a small grid is over as soon as its check would be
    for run in ("ahead-test", "ahead-test-preflight"):
        shutil.rmtree(run_folder(run), ignore_errors=True)

"""Before a grid runs, its memories answer a few validation questions; one that could show nothing is said, and the exit status follows."""

import pytest

from hippo_core.experiments.asking.report import runs
from hippo_core.experiments.asking.report.contract import Violation
from hippo_core.lab.cli import grid_commands
from hippo_core.lab.grid.expand import Selection, expand
from hippo_core.lab.grid.preflight import ITEMS, probes
from hippo_core.lab.grid.running import RunOptions
from hippo_core.results.records import run_folder


@pytest.fixture(scope="module")
def cells():
    return expand("spatial-real").cells


def test_every_memory_is_asked_in_each_setting_with_its_store_and_without(cells):
    tests = [cell for cell in probes(cells, "checked") if cell.parameters.get("step") == "test"]
    asked = {(cell.parameters["profile"], *(one for one in cell.parameters["overrides"] if "encoder" not in one)) for cell in tests}
    assert asked == {("paths_5",), ("paths_5", "control=empty"), ("explore",), ("explore", "control=empty")} and len(tests) == 4
    assert {(cell.parameters["split"], cell.parameters["n"], cell.parameters["preset"]) for cell in tests} == {
        ("val", ITEMS, "memory/smpd")
    }
    assert all(run_folder("checked") in cell.record.parents for cell in probes(cells, "checked") if cell.experiment)


def test_ablations_controls_and_baselines_are_not_asked():
    plain = [
        cell for cell in expand("spatial", selection=Selection(only=("memory/*",))).cells if cell.parameters.get("profile") == "default"
    ]
    tests = [cell for cell in probes(plain, "checked") if cell.parameters.get("step") == "test"]
    assert {tuple(cell.parameters["overrides"]) for cell in tests} == {("encoder=minilm",), ("encoder=minilm", "control=empty")}
    assert probes(expand("spatial", selection=Selection(only=("baselines/*",))).cells, "checked") == ()


@pytest.mark.parametrize(("why", "status"), [("its memory was never asked", 1), ("", 0)])
def test_a_broken_clause_is_said_and_fails(monkeypatch, capsys, why, status):
    ran, found = [], [Violation("a", "memory/smpd", "spatial", why)] if why else []
    monkeypatch.setattr(grid_commands, "run", lambda status, *_: ran.extend(status.waiting) or [])
    monkeypatch.setattr(grid_commands, "supersede", lambda cells: None)
    monkeypatch.setattr(runs, "broken_clauses", lambda folder: found)
    assert grid_commands.preflight_grid("spatial-real", "preflight-test", Selection(), RunOptions()) == status
    assert ran and (f"INVALID: smpd on spatial: {why}." in capsys.readouterr().out) == bool(why)
    (run_folder("preflight-test-preflight") / ".lock").unlink(missing_ok=True)

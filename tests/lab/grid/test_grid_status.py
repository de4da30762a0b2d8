"""What is left of a grid to run: whatever has no whole record, and nothing else. No kernel runs here."""

import json
import shutil

import pytest

from hippo_core.lab.cli import cell_commands
from hippo_core.lab.cli.grid_commands import plan_grid
from hippo_core.lab.grid.engine import ALONE
from hippo_core.lab.grid.expand import Selection, expand
from hippo_core.lab.grid.grid_status import START, RecordStatus, status_of
from hippo_core.lab.run import record_files
from hippo_core.lab.run.execute import Outcome
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.results.records import DONE, seal


def damage_rows(record):
    rows = record / "metrics.csv"
    rows.write_bytes(rows.read_bytes().replace(b"0,1", b"0,0"))


def take_done(record):
    (record / DONE).unlink()


def fail(record):
    """What a cell leaves that fails in this place."""
    shutil.rmtree(record)
    folder = record_files.open_folder(record)
    (folder / "metrics.csv").write_text("idx,score\n0,1\n")
    (folder / record_files.NOTEBOOK).write_text("{}")
    record_files.keep_failed(folder, record, "IndexError: list index out of range")


@pytest.fixture
def finished(lab_dir):
    """The cells of a grid, each with a whole record of a few bytes."""
    cells = expand("tiny").cells
    for cell in cells:
        cell.record.mkdir(parents=True)
        (cell.record / "metrics.csv").write_text("idx,score\n0,1\n")
        seal(cell.record)
    return cells


def plan(capsys):
    """The last line of the grid's plan."""
    plan_grid("tiny", "", Selection(), ALONE)
    return capsys.readouterr().out.splitlines()[-1]


def test_a_finished_grid_has_nothing_to_run(finished, capsys):
    assert plan(capsys) == "7 cells: 7 to skip, 0 to run"
    assert status_of(finished).finished == finished


@pytest.mark.parametrize("fault", [damage_rows, take_done, fail])
def test_a_cell_without_a_whole_record_runs_again(finished, fault):
    cell = finished[-1]
    fault(cell.record)
    assert cell.record.is_dir()
    assert status_of(finished).waiting == (cell,)


def test_a_byte_altered_a_missing_done_and_a_failed_cell_are_three_to_run(finished, capsys):
    asked = [cell for cell in finished if cell.experiment == "answer"]
    for fault, cell in zip((damage_rows, take_done, fail), asked, strict=False):
        fault(cell.record)
    assert plan(capsys).startswith("7 cells: 4 to skip, 3 to run")


@pytest.mark.parametrize(
    ("name", "few", "many", "times"),
    [
        ("answer", {"n": 50}, {"n": 200}, 4),
        ("conversation", {"techniques": ["none"], "lengths": [16]}, {"techniques": ["none", "full"], "lengths": [32]}, 4),
        ("conversation", {"budgets": [64]}, {"budgets": [64, 128, 256]}, 3),
        ("cache", {"kinds": ["gaussian"], "defences": []}, {"kinds": ["gaussian", "bitflip"], "defences": ["clipping"]}, 4),
        ("cache", {"step": "train", "steps": 50}, {"step": "train", "steps": 200, "n": 99}, 4),
        ("forgetting", {"tasks": ["copy"], "steps": 100}, {"tasks": ["copy", "add"], "steps": 150}, 3),
        ("consolidation", {"steps": 25}, {"steps": 100, "cycles": 2}, 8),
        ("sleeps", {"steps": None, "groups": 2}, {"steps": None, "groups": 6}, 3),
        ("paired", {"conditions": ["lexical"], "n": 5}, {"conditions": ["lexical", "semantic"], "n": 5, "repeats": 2}, 4),
    ],
)
def test_a_cell_s_work_grows_with_what_it_is_told(name, few, many, times):
    experiment = load_experiment(name)
    assert experiment.work(experiment.parameters(**many)) == times * experiment.work(experiment.parameters(**few))


def test_a_plan_s_time_is_that_of_a_like_record_grown_with_the_work(lab_dir, capsys):
    """The records of another experiment and step say nothing, those of another model only where there is none of this one."""
    one, *others = [cell for cell in expand("tiny").cells if cell.experiment == "answer"]
    meta = {"phase": one.phase, "experiment": "answer", "cell_seconds": START + 1.0, "parameters": {**one.parameters, "n": 1}}
    strange = {"experiment": {"experiment": "cache"}, "phase": {"phase": "another"}, "model": {"parameters": {"model": "other", "n": 1}}}
    for name, change in {"own": {}, **strange}.items():
        folder = one.record.parent / name
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text(json.dumps(meta | {"cell_seconds": 99.0} | change if change else meta))
    assert one.parameters["n"] == 4
    assert set(RecordStatus((), (one, *others)).estimates.values()) == {START + 4.0}
    shutil.rmtree(one.record.parent / "own")
    assert RecordStatus((), (one,)).estimates == {one.id: pytest.approx(START + 4 * (99.0 - START))}
    assert " of them, of which no earlier record tells, as the mean of the others)" in plan(capsys)


def test_a_data_set_that_was_taken_away_is_built_again_and_a_failure_is_not_called_built(lab_dir, monkeypatch, capsys):
    state = "done"

    def run(status, options):
        for cell in status.waiting:
            cell.record.mkdir(parents=True)
            (cell.record / "metrics.csv").write_text("idx,score\n0,1\n")
            seal(cell.record)
            cell_commands._dataset(cell.parameters).mkdir(parents=True)
        return [Outcome(cell, state, 1.0) for cell in status.waiting]

    def says():
        code = cell_commands.build_datasets(["suite=episodic", "n=4", "model=model"])
        return code, capsys.readouterr().out.splitlines()[-1]

    monkeypatch.setattr(cell_commands, "run", run)
    assert says() == (0, "0 there already, 1 built, under data/generated")
    assert says() == (0, "1 there already, 0 built, under data/generated")
    shutil.rmtree(lab_dir / "data/generated")
    assert says() == (0, "0 there already, 1 built, under data/generated")
    shutil.rmtree(lab_dir / "data/generated")
    state = "failed"
    assert says() == (1, "0 there already, 0 built, 1 failed, under data/generated")

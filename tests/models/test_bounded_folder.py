"""A bounded folder stays within its limit, whoever writes, drops what was not used for longest, and never shows half a file."""

import os
import subprocess
import sys
import time
import warnings

import pytest

from hippo_core.errors import LabError
from hippo_core.models.bounded_folder import SEAL, SUFFIX, BoundedFolder

KILLED = """
import os, sys
from pathlib import Path
from hippo_core.models import bounded_folder
os.replace = lambda *paths: os.kill(os.getpid(), 9)
bounded_folder.BoundedFolder(Path(sys.argv[1]), 1000).write(Path(sys.argv[1]) / "half", b"x" * 368)
"""


def size(folder) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def names(folder) -> set[str]:
    return {path.name.removesuffix(SUFFIX) for path in folder.rglob("*") if path.is_file()}


def filling(size: int) -> bytes:
    """A content whose file has so many bytes."""
    return bytes(size - SEAL)


def age(path, seconds: float) -> None:
    """Make a file look as if it was used so long ago."""
    path = path if path.exists() else path.with_name(path.name + SUFFIX)
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_the_limit_holds_and_what_was_not_used_for_longest_goes_first(tmp_path):
    folder = BoundedFolder(tmp_path, 1000)
    for number, name in enumerate("abc"):
        folder.write(tmp_path / name, filling(300))
        age(tmp_path / name, 100 - number)
    assert folder.read(tmp_path / "a") == filling(300)
    with pytest.warns(UserWarning, match="is full: it may take 0 MiB"):
        folder.write(tmp_path / "sub" / "d", filling(300))
    assert names(tmp_path) == {"a", "c", "d"} and folder.read(tmp_path / "b") is None


def test_many_writers_stay_within_the_limit_and_a_sixteenth_each(tmp_path):
    folders, most = [BoundedFolder(tmp_path, 1600) for _ in range(3)], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(40):
            folders[number % 3].write(tmp_path / str(number), filling(90))
            most = max(most, size(tmp_path))
    assert 1200 < most <= 1600 + 2 * 100


def test_a_full_folder_is_said_once(tmp_path):
    folder = BoundedFolder(tmp_path, 1000)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for number in range(8):
            folder.write(tmp_path / str(number), filling(300))
    assert len(warned) == 1 and size(tmp_path) <= 1000


def test_a_file_above_the_limit_is_refused(tmp_path):
    with pytest.raises(LabError, match=r"takes 1,001 bytes, .* may take 1,000; raise the limit"):
        BoundedFolder(tmp_path, 1000).write(tmp_path / "a", filling(1001))
    assert names(tmp_path) == set()


def test_a_killed_write_leaves_no_half_file_and_what_it_left_goes(tmp_path):
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert ended.returncode == -9
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".half.") and BoundedFolder(tmp_path, 1000).read(tmp_path / "half") is None
    age(left, 100)
    folder = BoundedFolder(tmp_path, 1000)
    with pytest.warns(UserWarning, match="is full"):
        folder.write(tmp_path / "whole", filling(800))
    assert names(tmp_path) == {"whole"}


def test_files_of_others_stay_and_do_not_count(tmp_path):
    mine, elsewhere = tmp_path / "photo.jpg", tmp_path / "elsewhere"
    mine.write_bytes(bytes(5000))
    elsewhere.write_bytes(bytes(400))
    (tmp_path / "linked.kept").symlink_to(elsewhere)
    age(mine, 1000)
    folder = BoundedFolder(tmp_path, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(8):
            folder.write(tmp_path / str(number), filling(300))
    assert mine.exists() and elsewhere.exists()


@pytest.mark.parametrize("at", [0, SEAL, -1])
def test_a_damaged_file_is_refused(tmp_path, at):
    folder = BoundedFolder(tmp_path, 1000)
    folder.write(tmp_path / "a", filling(300))
    path = tmp_path / f"a{SUFFIX}"
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(LabError, match=r"is damaged.*delete it"):
        folder.read(tmp_path / "a")

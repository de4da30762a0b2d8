"""A bounded folder stays within its limit, whoever writes, drops what was not used for longest, and never shows half a file."""

import os
import subprocess
import sys
import time
import warnings

import pytest

from hippo_core.files import LabError
from hippo_core.models.bounded_folder import BoundedFolder

KILLED = """
import os, sys
from pathlib import Path
from hippo_core.models import bounded_folder
os.replace = lambda *paths: os.kill(os.getpid(), 9)
bounded_folder.BoundedFolder(Path(sys.argv[1]), 100).write(Path(sys.argv[1]) / "half", b"x" * 40)
"""


def size(folder) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def names(folder) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def age(path, seconds: float) -> None:
    """Make a file look as if it was used so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_the_limit_holds_and_what_was_not_used_for_longest_goes_first(tmp_path):
    folder = BoundedFolder(tmp_path, 100)
    for number, name in enumerate("abc"):
        folder.write(tmp_path / name, bytes(30))
        age(tmp_path / name, 100 - number)
    assert folder.read(tmp_path / "a") == bytes(30)
    with pytest.warns(UserWarning, match="is full: it may take 0 MiB"):
        folder.write(tmp_path / "sub" / "d", bytes(30))
    assert names(tmp_path) == {"a", "c", "d"} and folder.read(tmp_path / "b") is None


def test_many_writers_stay_within_the_limit_and_a_sixteenth_each(tmp_path):
    folders, most = [BoundedFolder(tmp_path, 1600) for _ in range(3)], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(40):
            folders[number % 3].write(tmp_path / str(number), bytes(90))
            most = max(most, size(tmp_path))
    assert 1200 < most <= 1600 + 2 * 100


def test_a_full_folder_is_said_once(tmp_path):
    folder = BoundedFolder(tmp_path, 100)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for number in range(8):
            folder.write(tmp_path / str(number), bytes(30))
    assert len(said) == 1 and size(tmp_path) <= 100


def test_a_file_above_the_limit_is_refused(tmp_path):
    with pytest.raises(LabError, match=r"takes 101 bytes, .* may take 100; raise the limit"):
        BoundedFolder(tmp_path, 100).write(tmp_path / "a", bytes(101))
    assert names(tmp_path) == set()


def test_a_killed_write_leaves_no_half_file_and_what_it_left_goes(tmp_path):
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert ended.returncode == -9
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".half.") and BoundedFolder(tmp_path, 100).read(tmp_path / "half") is None
    age(left, 100)
    folder = BoundedFolder(tmp_path, 100)
    with pytest.warns(UserWarning, match="is full"):
        folder.write(tmp_path / "whole", bytes(80))
    assert names(tmp_path) == {"whole"}

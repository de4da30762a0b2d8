"""A folder that a process holds stays as long as the process lives, and goes with the next one that is made after it was killed."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from hippo_core.files import locked_folder, mark, new_folder, root

HOLD = (
    "import sys, pathlib; from hippo_core.files import locked_folder; print(locked_folder(pathlib.Path('.'), 'x.')[0], flush=True); input()"
)


@pytest.fixture
def other(tmp_path):
    """Another process that holds a folder here."""
    pipe, around = subprocess.PIPE, {**os.environ, "PYTHONPATH": str(root())}
    running = subprocess.Popen([sys.executable, "-c", HOLD], cwd=tmp_path, stdin=pipe, stdout=pipe, text=True, env=around)
    yield running
    running.kill()
    running.communicate(timeout=60)


def test_a_folder_goes_when_its_process_was_killed_and_not_before(other, tmp_path):
    others_folder = tmp_path / other.stdout.readline().strip()
    (others_folder / "socket").touch()
    mine, hold = locked_folder(tmp_path, "x.")
    assert sorted(tmp_path.iterdir()) == sorted([others_folder, mine])
    other.kill()
    other.wait(timeout=60)
    again, _ = locked_folder(tmp_path, "x.")
    assert sorted(tmp_path.iterdir()) == sorted([mine, again])
    os.close(hold)


def test_what_was_left_of_a_folder_goes_when_it_is_made_again(tmp_path):
    for name in (".data.abcdefgh", ".data.mine", ".other.abcdefgh"):
        (tmp_path / name).mkdir()
    for name in (".data.abcdefgh", ".other.abcdefgh"):
        mark(tmp_path / name)
    with suppress(ValueError), new_folder(tmp_path / "data") as building:
        (building / "half").touch()
        raise ValueError("not made")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".data.mine", ".other.abcdefgh"]
    with new_folder(tmp_path / "data") as building:
        (building / "whole").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".data.mine", ".other.abcdefgh", "data"]

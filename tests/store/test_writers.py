"""One writer, readers beside it, and a closed store in a folder where nothing can be written."""

import os
import subprocess
import sys

import pytest

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.store import TraceStore
from tests.faults.mounts import mounted, read_only
from tests.store.made import IDENTITY, trace

WRITER = """
import sys
from hippo_core.store import TraceStore
from tests.store.made import IDENTITY, trace
store = TraceStore.open(sys.argv[1], "s1", IDENTITY)
print(store.append([trace()]), flush=True)
with store.together():
    store.append([trace()])
    print("writing", flush=True)
    input()
print("written", flush=True)
input()
"""
READ = "import sys; from hippo_core.store import TraceStore; print(TraceStore.open(sys.argv[1], 's1', read_only=True).size())"
SURROUNDINGS = {**os.environ, "PYTHONPATH": str(root())}


@pytest.fixture
def other(tmp_path):
    """Another process that writes to the store, and is in the middle of it."""
    TraceStore.create(tmp_path, "s1", IDENTITY).close()
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    running = subprocess.Popen(command, cwd=root(), stdin=pipe, stdout=pipe, text=True, env=SURROUNDINGS)
    assert [running.stdout.readline() for _ in range(2)] == ["[1]\n", "writing\n"]
    yield running
    running.kill()
    running.communicate(timeout=60)


def test_a_second_writer_is_refused_and_a_reader_is_not(other, tmp_path):
    with pytest.raises(LabError, match="another process"):
        TraceStore.open(tmp_path, "s1")
    with pytest.raises(LabError, match="another process"):
        TraceStore.create(tmp_path, "s1", IDENTITY)
    with TraceStore.open(tmp_path, "s1", read_only=True) as reader:
        assert reader.size() == 1
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "written\n"
        assert reader.size() == 2


def test_a_writer_that_was_killed_leaves_the_store_to_the_next(other, tmp_path):
    other.kill()
    other.wait(timeout=60)
    files = [tmp_path / "hei_nw/s1" / name for name in ("traces.sqlite", "traces.sqlite-wal")]
    left = [file.read_bytes() for file in files]
    with TraceStore.open(tmp_path, "s1", read_only=True) as reader:
        assert reader.size() == 1
    assert [file.read_bytes() for file in files] == left
    with TraceStore.open(tmp_path, "s1", IDENTITY) as store:
        assert store.size() == 1
        assert store.append([trace()]) == [2]
    assert {path.name for path in store.path.parent.iterdir()} == {"traces.sqlite", "store_meta.json"}


def test_two_objects_of_one_process_are_two_writers(store, tmp_path):
    store.append([trace()])
    with pytest.raises(LabError, match="another process or store object"):
        TraceStore.open(tmp_path, "s1")
    with TraceStore.open(tmp_path, "s1", read_only=True) as reader:
        assert reader.size() == 1
    store.append([trace()])
    assert store.size() == 2


def test_a_writer_that_closes_under_a_reader_says_so_and_has_lost_nothing(store, tmp_path):
    with TraceStore.open(tmp_path, "s1", read_only=True) as reader:
        store.append([trace()])
        with pytest.raises(LabError, match="in use by a reader"):
            store.close()
        assert reader.size() == 1
    with TraceStore.open(tmp_path, "s1") as again:
        assert again.size() == 1
    assert {path.name for path in store.path.parent.iterdir()} == {"traces.sqlite", "store_meta.json"}


def test_a_reader_writes_nothing(store, tmp_path):
    store.append([trace()])
    store.close()
    before = {path: path.stat().st_mtime_ns for path in (store.path, store.path.parent)}
    with TraceStore.open(tmp_path, "s1", read_only=True) as reader:
        for change in (lambda: reader.append([trace()]), lambda: reader.use([1]), lambda: reader.decay(0.1), lambda: reader.note("a", 1)):
            with pytest.raises(LabError, match="read-only"):
                change()
        assert reader.traces()[0].uses == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_closed_store_is_read_where_nothing_can_be_written(store, tmp_path):
    store.append([trace()])
    store.close()
    with mounted(read_only(tmp_path)) as (before, _):
        command = [*before, sys.executable, "-c", READ, str(tmp_path)]
        ran = subprocess.run(command, cwd=root(), capture_output=True, text=True, env=SURROUNDINGS, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr


def test_what_a_kill_left_is_read_where_nothing_can_be_written(other, tmp_path):
    other.kill()
    other.wait(timeout=60)
    with mounted(read_only(tmp_path)) as (before, _):
        command = [*before, sys.executable, "-c", READ, str(tmp_path)]
        ran = subprocess.run(command, cwd=root(), capture_output=True, text=True, env=SURROUNDINGS, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr


def test_a_store_is_closed_twice_without_harm(store):
    store.close()
    store.close()

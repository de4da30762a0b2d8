"""An archive keeps records whole or not at all: on a folder, and on an object store (a real S3 server on this machine)."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.results import records
from hippo_core.results.records.archive import Archive

FOLDER = "baselines/core/episodic/4_1"


@pytest.fixture(params=["folder", "s3"])
def url(request, tmp_path):
    """The address of an archive: a folder, or a bucket."""
    if request.param == "folder":
        return str(tmp_path / "shared")
    return f"{request.getfixturevalue('bucket')}/lab"


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """An empty repository that this process works in."""
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path / "lab"))
    return tmp_path / "lab"


def record(name="cell", run="run", sealed=True):
    """A small record below executed/."""
    folder = records.run_folder(run) / FOLDER / name
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text(f"idx\n{name}\n")
    (folder / "notebook.ipynb").write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    if sealed:
        records.seal(folder)
    return folder


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def sent(url, lab):
    """A record that is in the archive as well."""
    Archive(url).push(folder := record())
    return folder


def pulled(url):
    Archive(url).pull([f"run/{FOLDER}/cell"])


def test_a_record_comes_back_as_it_went(url, sent, tmp_path, monkeypatch):
    archive = Archive(url)
    assert archive.finished("run") == {f"run/{FOLDER}/cell"}
    assert archive.finished("other") == set()
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path / "elsewhere"))
    Archive(url).pull(archive.finished("run"))
    came = root() / "executed/run" / FOLDER / "cell"
    assert content(came) == content(sent)
    assert records.verify(root() / "executed/run") == (1, [])
    assert [path.name for path in came.parent.iterdir()] == ["cell"]


def test_a_finished_record_there_is_never_changed(url, sent):
    (sent / "metrics.csv").write_text("idx\naltered\n")
    records.seal(sent)
    Archive(url).push(sent)
    pulled(url)
    assert (sent / "metrics.csv").read_text() == "idx\naltered\n"  # whole here: it stays as well
    shutil.rmtree(sent)
    pulled(url)
    assert (sent / "metrics.csv").read_text() == "idx\ncell\n"


def test_what_a_failed_cell_left_is_kept_until_it_is_done(url, lab):
    failed = record(sealed=False)
    (failed / "error.txt").write_text("ValueError: no\n")
    archive = Archive(url)
    archive.push(failed)
    assert archive.finished("run") == set()
    (failed / "error.txt").unlink()
    records.seal(failed)
    archive.push(failed)
    assert archive.finished("run") == {f"run/{FOLDER}/cell"}
    before = content(failed)
    shutil.rmtree(failed)
    archive.pull([f"run/{FOLDER}/cell"])
    assert content(failed) == before


@pytest.mark.parametrize("name", ["notes.txt", "metrics.csv", "sub/notes.txt"])
def test_a_users_folder_in_the_place_of_a_record_is_kept_aside(lab, tmp_path, name):
    own = tmp_path / "shared/run" / FOLDER / "cell"
    (own / name).parent.mkdir(parents=True)
    (own / name).write_text("mine")
    Archive(str(tmp_path / "shared")).push(record())
    assert (own.with_name("cell.aside-1") / name).read_text() == "mine"
    assert Archive(str(tmp_path / "shared")).finished("run") == {f"run/{FOLDER}/cell"}


def test_a_copy_that_was_killed_leaves_no_record_and_is_made_anew(bucket, lab, monkeypatch):
    """The process dies before each file in turn."""
    sent = record()
    for number in range(len(list(sent.iterdir()))):
        code = (
            "import os, sys\nfrom pathlib import Path\nfrom hippo_core.results.records.archive import Archive\n"
            f"archive, left = Archive({f'{bucket}/killed'!r}), [{number}]\nput = archive._fs.put_file\n"
            "def dying(*files):\n    if not left[0]:\n        os._exit(9)\n    left[0] -= 1\n    put(*files)\n"
            f"archive._fs.put_file = dying\narchive.push(Path({str(sent)!r}))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
        assert Archive(f"{bucket}/killed").finished("run") == set()
    Archive(f"{bucket}/killed").push(sent)
    shutil.rmtree(sent)
    Archive(f"{bucket}/killed").pull([f"run/{FOLDER}/cell"])
    assert records.verify(sent) == (1, [])


def test_a_record_that_is_damaged_there_is_said(url, sent):
    archive = Archive(url)
    archive._fs.pipe_file(f"{archive._base}/run/{FOLDER}/cell/metrics.csv", b"idx\nbroken\n")
    shutil.rmtree(sent)
    with pytest.raises(LabError, match="damaged"):
        archive.pull([f"run/{FOLDER}/cell"])
    assert not sent.exists()


def test_many_that_bring_the_same_record_at_once_all_find_it(url, sent):
    before = content(sent)
    shutil.rmtree(sent)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(pulled, [url] * 16))
    assert content(sent) == before
    assert [path.name for path in sent.parent.iterdir()] == ["cell"]


def test_a_record_that_was_altered_here_is_kept_aside(url, sent):
    (sent / "metrics.csv").write_text("idx\naltered\n")
    pulled(url)
    assert (sent / "metrics.csv").read_text() == "idx\ncell\n"
    assert (sent.with_name("cell.aside-1") / "metrics.csv").read_text() == "idx\naltered\n"


def test_one_runner_at_a_time_holds_a_run(url, lab):
    Archive(url).check()
    with Archive(url).locked("run"):
        with pytest.raises(LabError, match=f"process {os.getpid()} on {socket.gethostname()}"), Archive(url).locked("run"):
            pass
        with Archive(url).locked("other"):
            pass
    with Archive(url).locked("run"):
        pass


@pytest.mark.parametrize(
    ("holder", "succeeds"),
    [
        ({"host": socket.gethostname(), "pid": 2**22 + 1, "ago": 0}, True),  # no such process
        ({"host": "elsewhere", "pid": 1, "ago": 3600}, True),
        ({"host": "elsewhere", "pid": 1, "ago": 0}, False),
    ],
)
def test_the_lock_of_a_dead_runner_is_taken_over(url, lab, holder, succeeds):
    archive = Archive(url)
    archive._write(archive._path("run/.lock"), json.dumps(holder | {"renewed": time.time() - holder["ago"]}).encode())
    expected = nullcontext() if succeeds else pytest.raises(LabError, match="on elsewhere")
    with expected, archive.locked("run"):
        pass


@pytest.mark.parametrize(
    ("address", "says"),
    [("s3://no-such-bucket/x", "no-such-bucket"), ("gopher://x/y", "gopher"), ("/proc/nowhere", "/proc/nowhere")],
)
def test_an_address_that_cannot_be_used_is_one_line(address, says, bucket):
    with pytest.raises(LabError, match=f"records cannot be kept at {address}: ") as error:
        Archive(address).check()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bucket_without_permission_is_said(guarded):
    with pytest.raises(LabError, match=r"records cannot be kept at s3://guarded/lab: .*Denied") as error:
        Archive("s3://guarded/lab").check()
    assert "this machine may read and write" in str(error.value)

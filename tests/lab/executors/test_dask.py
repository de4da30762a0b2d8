"""Cells on Dask workers leave the records that they leave here, whatever happens to a worker; a cluster that is not fit is refused."""

import signal
import subprocess
import time

import psutil
import pytest

from hippo_core.results import records
from tests.lab.conftest import ALL_FAULTS, make_lab
from tests.lab.running import COMMAND, environment, here, kernels_of, lab

LONG = pytest.mark.skipif(not ALL_FAULTS, reason="a cluster of its own for each: `make test-faults` runs it")


@pytest.fixture
def local(finished):
    """A lab whose quick grid has run here."""
    lab_dir, ran = finished
    assert ran.returncode == 0, ran.stderr
    return lab_dir


def on(cluster, *words):
    return ("grid", "quick", "--executor", "dask", "--scheduler", cluster.address, *words)


def equal(local, lab_dir):
    count, differences = records.diff(local / "executed/quick", lab_dir / "executed/quick")
    assert ([str(difference) for difference in differences], count) == ([], 5)
    assert records.verify(lab_dir / "executed/quick") == (5, [])


@pytest.mark.long
def test_two_workers_leave_the_records_of_this_machine_and_run_no_other_code(local, cluster, tmp_path):
    lab_dir = make_lab(tmp_path / "lab", local)
    workers = [cluster.add(lab_dir), cluster.add(lab_dir)]
    cluster.wait_for(2)
    ran = lab(lab_dir, *on(cluster))
    assert ran.returncode == 0, ran.stderr
    equal(local, lab_dir)
    assert all(worker.poll() is None for worker in workers)
    assert kernels_of(lab_dir) == []  # the kernels of the run and what they were forked from
    other = make_lab(tmp_path / "other", local)
    (other / "hippo_core/suites/episodic.py").open("a").write("# other\n")
    refused(here(other, *on(cluster)), other, "other code")


def refused(ran, lab_dir, says):
    assert ran.returncode == 2
    assert says in ran.stderr and "worker tcp://" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert not list(lab_dir.glob("executed/quick/**/notebook*"))


@pytest.mark.long
@LONG
def test_a_store_taught_on_one_worker_is_asked_on_another_that_shares_no_folder(cluster, bucket, tmp_path):
    """Runner and workers have a folder each: what a test needs comes from the archive."""
    lab_dir = make_lab(tmp_path / "lab")
    text = (lab_dir / "params/grids/sleep.yaml").read_text()
    short = text.replace("[baselines/rag_bm25, memory/hei_nw, controls/shuffled_store]", "[memory/hei_nw]")
    (lab_dir / "params/grids/sleep.yaml").write_text(short[: short.rindex("  - suites")])
    for number in range(2):
        cluster.add(make_lab(tmp_path / f"worker-{number}", lab_dir))
    cluster.wait_for(2)
    words = ("grid", "sleep", "--executor", "dask", "--scheduler", cluster.address, "--records", bucket, "--kernel", "cold")
    ran = lab(lab_dir, *words)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = records.read_rows(lab_dir / "executed/sleep")
    assert dict(rows.groupby("regime")["replayed"].max()) == {"after_sleep": 1, "delayed": 0}
    assert records.verify(lab_dir / "executed/sleep") == (6, [])  # a data set, a taught and a replayed store, two tests, the report


@pytest.mark.long
@LONG
def test_ctrl_c_ends_the_kernels_of_the_workers_and_not_the_workers(cluster, tmp_path):
    lab_dir = make_lab(tmp_path / "lab")
    worker = cluster.add(lab_dir)
    cluster.wait_for(1)
    hears = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    words = [*COMMAND, *on(cluster)]
    running = subprocess.Popen(words, cwd=lab_dir, env=environment(lab_dir), text=True, stderr=subprocess.PIPE, preexec_fn=hears)
    while running.poll() is None and not kernels_of(lab_dir):
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=120)
    assert running.returncode == 130, stderr
    assert stderr.strip().splitlines()[-1].startswith("stopped")
    assert kernels_of(lab_dir) == []
    assert worker.poll() is None
    assert lab(lab_dir, *on(cluster, "--kernel", "cold", "--only", "*/rag_bm25")).returncode == 0


@pytest.mark.long
@LONG
def test_workers_on_other_machines_copy_records_to_the_archive(local, cluster, bucket, tmp_path):
    """Runner and workers share no folder."""
    lab_dir = make_lab(tmp_path / "lab", local)
    for name in ("one", "two"):
        cluster.add(make_lab(tmp_path / name, local))
    cluster.wait_for(2)
    alone = lab(lab_dir, *on(cluster))
    assert alone.returncode == 2
    assert "does not see this run's folder" in alone.stderr and "RECORDS=" in alone.stderr
    ran = lab(lab_dir, *on(cluster, "--records", f"{bucket}/lab", "--kernel", "cold"))
    assert ran.returncode == 0, ran.stderr
    equal(local, lab_dir)
    assert len(list((tmp_path / "one/executed/quick").rglob("DONE")) + list((tmp_path / "two/executed/quick").rglob("DONE"))) >= 4
    other = make_lab(tmp_path / "other", local)
    assert "nothing to be done" in lab(other, "grid", "quick", "--records", f"{bucket}/lab").stdout
    assert len(records.records_of(other / "executed/quick")) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--executor", "dask", "--scheduler", "tcp://127.0.0.1:9"), "no Dask scheduler answers at tcp://127.0.0.1:9"),
        (("--executor", "dask", "--scheduler", "nowhere.json"), "no scheduler has written nowhere.json"),
        (("--executor", "dask"), "SCHEDULER=tcp://"),
        (("--executor", "ray"), "legal: dask, local"),
        (("--threads", "many"), "threads: expected a whole number"),
        (("--records", "gopher://x"), "records cannot be kept at gopher://x"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_before_work_starts(tmp_path, monkeypatch, words, says):
    monkeypatch.setattr("hippo_core.lab.grid.executors.dask.PATIENCE", 1)
    lab_dir = make_lab(tmp_path / "lab")
    ran = here(lab_dir, "grid", "quick", *words)
    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr
    assert not list(lab_dir.glob("executed/quick/**/notebook*"))


NEEDS_GPU = "max_memory_gb: 6\n"


@LONG
def test_cells_that_need_a_gpu_share_one_by_the_memory_they_declare(cluster, tmp_path):
    lab_dir = make_lab(tmp_path / "lab")
    (lab_dir / "params/models/big.yaml").write_text(f"source: model\n{NEEDS_GPU}")
    grid = lab_dir / "params/grids/quick.yaml"
    grid.write_text(grid.read_text().replace("[model]", "[big]"))
    cluster.add(lab_dir)
    cluster.wait_for(1)
    none = lab(lab_dir, *on(cluster))
    assert none.returncode == 2
    assert "needs a GPU and no worker offers one" in none.stderr
    cluster.add(lab_dir, "--resources", "GPU=1 GPU_GB=24")
    cluster.wait_for(2)
    ran = lab(lab_dir, *on(cluster, "--kernel", "cold", "--only", "*/span_short"))
    assert ran.returncode == 0, ran.stderr
    assert len(records.records_of(lab_dir / "executed/quick")) == 2


@pytest.mark.long
@LONG
def test_a_killed_worker_loses_nothing(local, cluster, tmp_path):
    lab_dir = make_lab(tmp_path / "lab", local)
    first, _ = cluster.add(lab_dir), cluster.add(lab_dir)
    cluster.wait_for(2)
    running = subprocess.Popen([*COMMAND, *on(cluster, "--kernel", "cold")], cwd=lab_dir, env=environment(lab_dir))
    while running.poll() is None and not psutil.Process(first.pid).children(recursive=True):
        time.sleep(0.1)
    first.kill()
    assert running.wait(300) == 0
    equal(local, lab_dir)
    psutil.wait_procs(kernels_of(lab_dir), timeout=10)  # a kernel sees within a second that its worker has gone
    assert kernels_of(lab_dir) == []

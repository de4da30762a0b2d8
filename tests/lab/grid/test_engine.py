"""The engine on quick notebooks: nothing runs twice, Ctrl-C leaves nothing running, a failure stays alone, two grids exclude each other."""

import json
import os
import signal
import time

import pytest

from hippo_core.errors import LabError
from hippo_core.lab.run import record_files
from hippo_core.lab.run.cells import Cell
from hippo_core.lab.run.execute import Outcome
from hippo_core.results import records
from tests.lab.conftest import ALL_FAULTS, make_lab
from tests.lab.running import ended, here, kernels_of, lab, start


def test_a_grid_ends_with_its_summary_and_whole_records(finished):
    lab_dir, ran = finished
    assert ran.returncode == 0, ran.stderr
    heads = [line.split(":")[0] for line in ran.stdout.splitlines() if not line.startswith(" ")]
    assert heads[-5:] == ["cells", "time", "criteria", "records", "report"]
    count, faults = records.verify(lab_dir / "executed/quick")
    assert (count, faults) == (5, [])  # a data set, three cells, the report
    rows = records.read_rows(lab_dir / "executed/quick")
    assert len(rows) == 12
    assert set(rows["score"]) == {0.0, 1.0}


def test_a_record_says_before_the_run_what_runs(finished):
    lab_dir, _ = finished
    record = records.records_of(lab_dir / "executed/quick")[0]
    meta = records.read_meta(record)
    assert meta["cell"] == record.name
    assert {"notebook", "library", "lock", "data", "weights", "settings"} <= set(meta["checksums"])
    assert meta["seconds"] > 0
    assert meta["cell_seconds"] > meta["seconds"]
    notebook = json.loads((record / "notebook.ipynb").read_text())
    scraps = [
        media for cell in notebook["cells"] for output in cell.get("outputs", []) for media in output.get("data", {}) if "scrap" in media
    ]
    assert len(scraps) == 4


def test_a_record_names_no_folder_of_this_machine(finished):
    lab_dir, _ = finished
    notebooks = list(lab_dir.glob("executed/quick/**/notebook.ipynb"))
    assert len(notebooks) == 5
    assert [path for path in notebooks if str(lab_dir) in path.read_text(encoding="utf-8")] == []
    made = json.loads(notebooks[0].read_text(encoding="utf-8"))["metadata"]["papermill"]
    assert made["input_path"].startswith("notebooks/") and made["output_path"].startswith("executed/quick/")


def test_a_second_call_runs_nothing_and_is_quick(finished):
    lab_dir, _ = finished
    before = os.times()
    again = lab(lab_dir, "grid", "quick")
    after = os.times()
    computed = after.children_user + after.children_system - before.children_user - before.children_system
    assert computed < 5  # seconds of processor time: a wall clock would judge what else the machine does
    assert "nothing to be done" in again.stdout
    assert "0 done, 4 skipped, 0 failed" in again.stdout


def test_a_plan_skips_what_is_finished_and_estimates_the_rest(finished):
    lab_dir, _ = finished
    assert here(lab_dir, "grid-plan", "quick").stdout.splitlines()[-1].startswith("4 cells: 4 to skip, 0 to run")
    other = here(lab_dir, "grid-plan", "quick", "--run-id", "other").stdout
    assert "0 to skip, 4 to run, about" in other


@pytest.mark.long
def test_ctrl_c_stops_cleanly(tmp_path):
    lab_dir = make_lab(tmp_path / "lab")
    running = start(lab_dir)
    running.send_signal(signal.SIGINT)
    stopped = ended(running)
    assert stopped.returncode == 130
    assert stopped.stderr.strip().splitlines()[-1].startswith("stopped")
    assert kernels_of(lab_dir) == []
    assert not list(lab_dir.glob("executed/quick/**/error.txt"))


@pytest.mark.long
def test_a_single_cell_is_kept_and_runs_again_aside(finished):
    lab_dir, _ = finished
    words = ("run", "answer", "suite=episodic", "preset=baselines/core", "model=model", "n=50", "dry_run=true")
    first = lab(lab_dir, *words)
    assert first.returncode == 0, first.stderr
    assert "5 episodic questions" in first.stdout
    again = here(lab_dir, *words)
    assert again.returncode == 0
    assert "finished already: executed/single/" in again.stdout
    aside = lab(lab_dir, *words, "--again")
    assert "kept aside:" in aside.stdout
    first_record, second_record = sorted(lab_dir.glob("executed/single/baselines/core/episodic/50_1337/*"))
    assert records.diff(first_record, second_record) == (1, [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "answer", "suite=episodik"), "episodic_cross"),
        (("run", "answer", "preset=rag"), "baselines/rag_bm25"),
        (("run", "answer", "model=gpt"), "hippo-tiny"),
        (("run", "answer", "n=many"), "many"),
        (("run", "answer", "n=5.5"), "5.5"),
        (("run", "answer", "colour=red"), "regime"),
        (("run", "answer", "n"), "key=value"),
        (
            ("run", "dream"),
            "'dream'; legal: answer, cache, consolidation, conversation, forgetting, memory, package.module:NAME, paired, sleeps",
        ),
        (("grid", "smok"), "smoke"),
        (("grid", "smoke", "--run-id", "../x"), "RUN_ID"),
        (("notebook", "02_baselin"), "02_baseline"),
        (("notebook", "05_report", "colour=red"), "run_id"),
        (("report", "nothing"), "legal"),
        (("records", "diff", "a", "b"), "no such folder"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_with_the_way_out(finished, words, says):
    ran = here(finished[0], *words)
    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_missing_weights_are_said_before_anything_runs(lab_dir):
    (lab_dir / "params/models/hippo-tiny.yaml").write_text("source: data/weights/none\ncontext_limit: 512\n")
    ran = here(lab_dir, "run", "answer", "model=hippo-tiny")
    assert ran.returncode == 2
    assert "make base-model" in ran.stderr
    assert not list(lab_dir.glob("executed/single/baselines/**/*"))


def test_two_grids_on_one_run_exclude_each_other(tmp_path):
    with record_files.locked(tmp_path / "run", alone=True):
        with pytest.raises(LabError, match=f"process {os.getpid()}"), record_files.locked(tmp_path / "run", alone=True):
            pass
        with pytest.raises(LabError, match="RUN_ID"), record_files.locked(tmp_path / "run", alone=False):
            pass
    with record_files.locked(tmp_path / "run", alone=False), record_files.locked(tmp_path / "run", alone=False):
        pass


def test_a_finished_record_is_never_overwritten(tmp_path):
    record = tmp_path / "run/cell"
    folder = record_files.open_folder(record)
    (folder / "metrics.csv").write_text("idx\n")
    record_files.keep(folder, record)
    with pytest.raises(LabError, match="finished already"):
        record_files.keep(record_files.open_folder(record), record)
    (record / "metrics.csv").write_text("idx\n1\n")  # altered since: kept aside
    record_files.keep(record_files.open_folder(record), record)
    assert (tmp_path / "run/cell.aside-1/metrics.csv").read_text() == "idx\n1\n"


BROKEN = """import os, pathlib, signal, time
attempts = pathlib.Path(os.environ["HIPPO_ROOT"]) / f"attempts-{preset[-5:]}-{regime}"
attempts.open("a").write("one\\n")
if "bm25" in preset:
    __import__("numpy").ones(10**9)
elif regime == "delayed":
    [][1]
elif len(attempts.read_text().split()) == 1:
    HOW
"""


def broken(lab_dir, code_that_breaks, settings=""):
    """Break a lab's cells, each in its way, and give its quick grid more settings."""
    grid = lab_dir / "params/grids/quick.yaml"
    grid.write_text(grid.read_text() + settings)
    path = lab_dir / "notebooks/02_baseline.ipynb"
    notebook = json.loads(path.read_text())
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "lab.begin" in "".join(cell["source"]))
    code["source"] = BROKEN.replace("HOW", code_that_breaks) + "".join(code["source"])
    path.write_text(json.dumps(notebook))
    return lab_dir


@pytest.mark.long
def test_what_breaks_breaks_alone_and_a_cell_that_crashes_runs_once_more(tmp_path):
    """One cell is killed the first time, one raises an error, one eats memory each time; two and the report go on."""
    lab_dir = broken(make_lab(tmp_path / "lab"), "os.kill(os.getpid(), signal.SIGKILL)", "memory: 3\n")  # GB; a kernel takes one
    ran = lab(lab_dir, "grid", "quick", "--kernel", "warm")
    assert ran.returncode == 1
    attempts = {path.name: len(path.read_text().split()) for path in lab_dir.glob("attempts-*")}
    assert attempts == {"attempts-short-immediate": 2, "attempts-short-delayed": 1, "attempts-_bm25-delayed": 2}, ran.stdout
    assert ran.stdout.count("it runs once more, alone") == 2
    assert "the kernel died" in ran.stdout and "IndexError: list index out of range" in ran.stdout
    assert "MemoryError" in ran.stdout and "(twice, the second time alone)" in ran.stdout
    assert "3 done, 0 skipped, 2 failed" in ran.stdout, ran.stdout
    assert len(list(lab_dir.glob("executed/quick/**/notebook.failed.ipynb"))) == 2
    assert kernels_of(lab_dir) == []
    alone = next(line.split("alone:")[1].split() for line in ran.stdout.splitlines() if "alone:" in line and "rag" not in line)
    again = lab(lab_dir, *alone[1:])
    assert (again.returncode, "IndexError" in again.stdout) == (1, True), again.stdout + again.stderr


@pytest.mark.skipif(not ALL_FAULTS, reason="`make test-faults` waits for cells that hang")
def test_a_cell_that_hangs_is_tried_once_more(tmp_path):
    lab_dir = broken(make_lab(tmp_path / "lab"), "time.sleep(600)", "timeout: 3\n")  # a busy machine may be slower than that
    ran = lab(lab_dir, "grid", "quick", "--kernel", "cold")
    assert ran.returncode == 1
    assert "longer than the grid's timeout" in ran.stdout and "it runs once more, alone" in ran.stdout
    assert kernels_of(lab_dir) == []


def test_second_attempts_begin_when_nothing_else_runs(tmp_path, monkeypatch):
    from hippo_core.lab.grid import engine
    from hippo_core.lab.grid.executors import local
    from hippo_core.lab.grid.progress.screen import Progress
    from hippo_core.lab.run.execute import DEFAULTS

    log, running = [], []

    def pretend(cell, *_):
        running.append(cell.id)
        log.append((cell.id, len(running)))
        time.sleep(0.05)
        running.remove(cell.id)
        attempts = sum(name == cell.id for name, _ in log)
        return Outcome(cell, "crashed" if cell.id in "ab" and attempts == 1 else "done", 0.05, "the kernel died")

    monkeypatch.setattr(local, "execute", pretend)
    cells = [
        Cell("p", {}, name, tmp_path / name, name, {need: need for need in needs})
        for name, needs in (("a", ""), ("b", ""), ("c", "a"), ("d", ""), ("e", ""))
    ]
    outcomes = engine.run_cells(cells, local.Local(cells, 2, DEFAULTS, ()), Progress(cells, 2))
    assert sorted(outcome.cell.id for outcome in outcomes) == list("abcde")
    assert {outcome.state for outcome in outcomes} == {"done"}
    second = [index for index, (name, _) in enumerate(log) if name in "ab"][2:]
    assert [log[index][1] for index in second] == [1, 1]
    assert all(log.index((name, count)) < second[0] for name, count in log if name in "de")
    assert [name for name, _ in log].index("c") > second[0]  # it needs a


def test_a_full_disk_is_one_line_and_leaves_no_record(lab_dir, monkeypatch):
    import errno
    from threading import Event

    from hippo_core.lab.run import execute
    from hippo_core.lab.run.cells import cells_of
    from hippo_core.lab.run.execute import Output
    from hippo_core.protocols.base.experiment import load_experiment

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(record_files, "seal", full)
    experiment = load_experiment("answer")
    cell = cells_of(experiment.plan(experiment.parameters(model="model", n=4, run_id="full")))[-1]
    written = json.dumps({"cell": cell.id, "parameters": {}})
    monkeypatch.setattr(execute, "run_notebook", lambda _, target, *__: (target.parent / "meta.json").write_text(written))
    with pytest.raises(LabError, match="disk is full"):
        execute.execute(cell, Output(), Event())
    assert not cell.record.exists()

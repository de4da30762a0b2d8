"""How a grid comes along: the time left by properties, the tail of a cell, the status file and those who watch it."""

import io
import json
import os
import signal
import subprocess
import threading
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hippo_core.errors import LabError
from hippo_core.lab.grid.progress import screen, status
from hippo_core.lab.run.cells import Cell
from hippo_core.lab.run.execute import LINES, Outcome, Output
from hippo_core.lab.run.record_files import locked
from tests.lab.conftest import ALL_FAULTS as LONG
from tests.lab.conftest import make_lab
from tests.lab.running import COMMAND, environment, here, kernels_of, lab

SECONDS = st.floats(0, 1000)


def cell(name):
    return Cell("p", {}, name, Path(name), f"cell {name}")


@given(st.lists(SECONDS, min_size=1, max_size=12), st.integers(1, 4))
def test_time_left_lies_between_the_bounds_of_any_schedule(seconds, jobs):
    earlier = {f"c{number}": value for number, value in enumerate(seconds)}
    left = status.seconds_left([cell(name) for name in earlier], {}, [], earlier, jobs)
    assert max([sum(seconds) / jobs, *seconds]) - 1e-6 <= left <= sum(seconds) + 1e-6


def test_what_is_known_best_counts():
    a, b, c = (cell(name) for name in "abc")
    assert status.seconds_left([b, c], {}, [(a, 10.0)], {}, 1) == 20  # as long as those that have ended
    assert status.seconds_left([b, c], {}, [(a, 10.0)], {"b": 60.0}, 1) == 70
    assert status.seconds_left([b, c], {}, [(a, 10.0)], {"a": 20.0, "b": 60.0}, 1) == 40  # twice as fast as older records say
    assert status.seconds_left([b, c], {"b": 4.0, "c": 99.0}, [(a, 10.0)], {}, 2) == 6
    assert status.seconds_left([b, c], {}, [], {"b": 60.0}, 1) == 120
    assert status.seconds_left([b, c], {}, [], {}, 1) is None
    assert status.seconds_left([], {}, [], {}, 1) == 0


def test_progress_counts_only_what_is_left():
    cells = [cell("a"), cell("b"), cell("c")]
    progress = screen.Progress(cells, 1, earlier=dict.fromkeys("abc", 600.0))
    assert progress.seconds_left() == 1800
    progress.began(cells[0], Output())
    assert 1700 < progress.seconds_left() <= 1800
    progress.ended(Outcome(cells[0], "done", 300.0))
    assert progress.seconds_left() == 600  # twice as fast as older records say
    progress.ended(Outcome(cells[1], "failed", 0.0, "not run"))
    progress.ended(Outcome(cells[2], "done", 300.0))
    assert progress.seconds_left() == 0
    now = progress.status()
    assert (now.total, now.done, now.failed, now.remaining) == (3, 2, 1, 0)
    assert [failure.message for failure in now.failures] == ["not run"]


@given(st.text(alphabet="ab \n\r", max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_a_tail_does_not_depend_on_how_the_text_came(text, cuts):
    at_once, pieces = Output(), Output()
    at_once.write(text)
    bounds = [0, *sorted(cuts), len(text)]
    for begin, end in pairwise(bounds):
        pieces.write(text[begin:end])
    assert pieces.lines == at_once.lines
    assert all(line and "\r" not in line for line in at_once.lines)


def test_a_tail_is_what_a_terminal_would_show():
    output = Output()
    assert (output.lines, output.line) == ([], "")
    for done in range(3):
        output.write(f"\r{done} of 3")
    assert output.lines == ["2 of 3"]
    output.write("\r      \r\x1b[1;31mred\x1b[0m words\r\n\n  open")
    assert output.lines == ["red words", "  open"]
    assert output.line == "open"
    output.write("\nx" * 100 + "y" * 10_000)
    assert len(output.lines) == LINES
    assert set(map(len, output.lines[:-1])) == {1}
    assert len(output.line) < 1000


def a_status(**changes):
    failed = status.EndedStatus(
        id="f", label="a failed cell", state="failed", seconds=2.0, message="ValueError: no <b>", notebook="executed/f"
    )
    running = [
        status.RunningStatus(id="r", label="a slow cell", seconds=90.0, tail=["loading", "10 of 50 <i>"]),
        status.RunningStatus(id="q", label="a quick cell", seconds=3.0, tail=["begun " * 40]),
    ]
    known = {"run_id": "quick", "total": 9, "done": 1, "failed": 1, "skipped": 3}
    known |= {"started": 1000.0, "updated": 1100.0, "seconds_left": 200.0}
    done = status.EndedStatus(id="d", label="a done cell", state="done", seconds=4.0)
    return status.Status(**{**known, "running": running, "failures": [failed], "last": [done, failed], **changes})


def test_a_status_file_is_whole_at_any_moment_and_marked_in_the_end(lab_dir):
    (lab_dir / "executed/quick").mkdir(parents=True)
    seen, over = [], threading.Event()
    with status.StatusFile("quick", every=0) as file:
        file.show(a_status(done=0))
        reader = threading.Thread(target=lambda: [seen.append(json.loads(file.path.read_text())) for _ in iter(over.is_set, True)])
        reader.start()
        for done in range(100):
            file.show(a_status(done=done))
        over.set()
        reader.join()
    assert {seen_status["run_id"] for seen_status in seen} <= {"quick"}
    assert [seen_status["done"] for seen_status in seen] == sorted(seen_status["done"] for seen_status in seen)
    now, works = status.poll("quick")
    assert (now.state, now.done, now.running, works) == ("ended", 99, [], False)
    assert "call it again: make grid GRID=quick" in status.absent("quick", now)
    assert [path.name for path in (lab_dir / "executed/quick").iterdir()] == [status.FILE]


def test_a_status_that_cannot_be_written_harms_nothing(lab_dir):
    (lab_dir / "executed").mkdir()
    (lab_dir / "executed/quick").write_text("no folder")
    with status.StatusFile("quick", every=0) as file:
        file.show(a_status())
    assert (lab_dir / "executed/quick").read_text() == "no folder"


@pytest.mark.parametrize("text", ["", "{", '{"total": 1}', "[]"])
def test_a_file_of_another_kind_is_no_status(lab_dir, text):
    (lab_dir / "executed/quick").mkdir(parents=True)
    (lab_dir / "executed/quick" / status.FILE).write_text(text)
    assert status.poll("quick") == (None, False)


def test_a_runner_is_known_by_the_lock_that_it_holds(lab_dir):
    with status.StatusFile("quick", every=0) as file:
        file.show(a_status())
        assert status.poll("quick") == (status.read("quick"), False)
        with locked(lab_dir / "executed/quick", alone=True):
            assert status.poll("quick") == (status.read("quick"), True)


def drawn(picture, width):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(picture)
    return console.file.getvalue().splitlines()


def test_the_picture_shows_counts_time_cells_and_what_they_say():
    lines = drawn(screen.picture(a_status(), "", 40), 100)
    assert lines[0] == "1 done, 1 failed, 2 running, 5 waiting, 3 skipped; 1 min 40 s so far, about 3 min 20 s left"
    assert [line.split("  ")[0] for line in lines[1:4]] == ["a done cell  ".strip(), "a failed cell", "a slow cell"]
    assert lines[4] == "  10 of 50 <i>"
    assert lines[-3:] == ["output of a slow cell", "  loading", "  10 of 50 <i>"]
    assert max(map(len, drawn(screen.picture(a_status(), "", 40), 50)[1:])) <= 50
    assert "output of a quick cell" in drawn(screen.picture(a_status(), "quick", 40), 100)
    assert drawn(screen.picture(a_status(), "nowhere", 40), 100)[-1] == "no running cell's label holds 'nowhere'"
    assert "about" not in screen.headline(a_status(seconds_left=None))


def until(condition, patience=120.0):
    """What `told` gives as soon as it gives something."""
    end = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value


def slow_lab(lab_dir):
    """A lab whose cells say something and wait for a file `go`."""
    make_lab(lab_dir)
    path = lab_dir / "notebooks/02_baseline.ipynb"
    notebook = json.loads(path.read_text())
    code = next(cell for cell in notebook["cells"] if "lab.begin" in "".join(cell["source"]))
    wait = "import os, time\nprint('half way')\nwhile not os.path.exists(os.environ['HIPPO_ROOT'] + '/go'): time.sleep(0.05)\n"
    code["source"] = wait + "".join(code["source"])
    path.write_text(json.dumps(notebook))
    return lab_dir


def run(lab_dir, *words):
    """A command of a lab in the background; it hears Ctrl-C, even where the tests themselves do not."""
    hears_ctrl_c = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        [*COMMAND, *words], cwd=lab_dir, env=environment(lab_dir), text=True, preexec_fn=hears_ctrl_c, stdout=subprocess.PIPE
    )


def both_speak():
    now, works = status.poll("quick")
    return now if works and [running.tail for running in now.running] == [["half way"]] * 2 else None


@pytest.mark.long
def test_a_grid_is_watched_from_another_process(tmp_path, monkeypatch):
    lab_dir = slow_lab(tmp_path / "lab")
    monkeypatch.setenv("HIPPO_ROOT", str(lab_dir))
    grid = run(lab_dir, "grid", "quick")
    now = until(both_speak)
    assert (now.total, now.done, now.failed, now.remaining, now.pid) == (4, 1, 0, 3, grid.pid)
    watching = run(lab_dir, "watch", "quick")
    first = watching.stdout.readline()
    (lab_dir / "go").touch()
    printed, _ = grid.communicate(timeout=120)
    rest, _ = watching.communicate(timeout=120)
    assert grid.returncode == watching.returncode == 0
    watched, itself = (
        [line.split(" s, ")[0].split("] ")[1] for line in text.splitlines() if line.startswith("[")] for text in (first + rest, printed)
    )
    assert watched == itself[:4]  # the report comes after the cells
    assert rest.splitlines()[-1].startswith("quick has ended: 4 done, 0 failed, 0 running, 0 waiting")
    again = here(lab_dir, "watch", "quick")
    assert again.returncode == 2
    assert again.stderr.strip() == status.absent("quick", status.read("quick"))


@pytest.mark.skipif(not LONG, reason="`make test-faults` ends runners")
@pytest.mark.parametrize(("how", "says"), [(signal.SIGKILL, "is gone"), (signal.SIGINT, "has been stopped")])
def test_the_end_of_a_runner_is_recognised(tmp_path, monkeypatch, how, says):
    lab_dir = slow_lab(tmp_path / "lab")
    monkeypatch.setenv("HIPPO_ROOT", str(lab_dir))
    grid = run(lab_dir, "grid", "quick")
    assert until(both_speak)
    os.kill(grid.pid, how)
    until(lambda: not status.poll("quick")[1])  # it is not waited for: a zombie counts as gone
    grid.communicate(timeout=120)
    ran = lab(lab_dir, "watch", "quick")
    assert ran.returncode == 2
    assert says in ran.stderr and "make grid GRID=quick" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    until(lambda: not kernels_of(lab_dir))


def test_where_no_grid_runs_watch_says_how_to_start_one(lab_dir):
    with pytest.raises(LabError, match="there is no run tiny; start one: make grid GRID=tiny"):
        screen.watch("tiny")
    (lab_dir / "executed/mine").mkdir(parents=True)
    with pytest.raises(LabError, match="no grid runs on mine; start one: make grid GRID=smoke RUN_ID=mine"):
        screen.watch("mine")
    with pytest.raises(LabError, match="plain name"):
        screen.watch("../x")

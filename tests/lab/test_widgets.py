"""The widget: what it shows follows the status file; it follows by itself in a loop; a grid is started and stopped from it."""

import asyncio
import signal

import pytest

from hippo_core.errors import LabError
from hippo_core.lab import widgets
from hippo_core.lab.grid.progress import status
from hippo_core.lab.run.record_files import locked
from tests.lab.conftest import make_lab
from tests.lab.grid.test_engine import kernels_of
from tests.lab.test_progress import a_status, until


@pytest.fixture
def file(lab_dir):
    (lab_dir / "executed/quick").mkdir(parents=True)
    with locked(lab_dir / "executed/quick", alone=True):
        yield status.StatusFile("quick", every=0)


def text(view):
    return view.children[0].children[0].value + view.children[1].value


def test_it_shows_what_the_file_says(file):
    with file:
        file.show(a_status())
        view = widgets.watch("quick")
        for part in ("About 3 min 20 s left", "1 done", "1 failed", "2 running", "5 waiting", "3 finished before", "a slow cell"):
            assert part in text(view), part
        for part in ("10 of 50 &lt;i&gt;", "ValueError: no &lt;b&gt;", "executed/f"):  # what a cell says is text, not HTML
            assert part in text(view), part
        file.show(a_status(done=6, running=[], seconds_left=None))
        assert view.refresh()
        assert "7 of 9 cells" in text(view) and "a slow cell" not in text(view)
    assert not view.refresh()
    assert "Ended after" in text(view) and "ended, 1 failed" in text(view)


def test_a_runner_that_is_gone_is_said(lab_dir):
    status.StatusFile("quick", every=0).show(a_status())
    view = widgets.watch("quick")
    assert "runner gone" in text(view) and "make grid GRID=quick" in text(view)
    assert not view.refresh()


def test_it_waits_for_a_grid_and_ends_with_it(file):
    async def refresh_until_ended():
        view = widgets.watch("quick")
        assert "Waiting for a grid" in text(view)
        with file:
            file.show(a_status())
            while "a slow cell" not in text(view):
                await asyncio.sleep(0.05)
        await view.following
        assert "Ended after" in text(view)

    asyncio.run(asyncio.wait_for(refresh_until_ended(), 60))


def test_a_grid_is_started_and_stopped(tmp_path, monkeypatch):
    lab_dir = make_lab(tmp_path / "lab")
    monkeypatch.setenv("HIPPO_ROOT", str(lab_dir))
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # as it is while a kernel runs a cell
    view = widgets.start("quick")
    signal.signal(signal.SIGINT, usual)
    assert "starting" in text(view)
    until(lambda: status.poll("quick")[1])
    assert view.refresh() and "running" in text(view)
    with pytest.raises(LabError, match="already"):
        widgets.start("quick")
    view.stop()
    assert "stopping" in text(view)
    until(lambda: not view.refresh())
    assert "Stopped after" in text(view)
    assert "stopped; what is finished is kept" in (lab_dir / "executed/quick/.output").read_text()
    until(lambda: not kernels_of(lab_dir))


def test_a_grid_that_does_not_begin_shows_what_it_printed(lab_dir):
    with pytest.raises(LabError, match="legal"):
        widgets.start("nothing")
    assert not (lab_dir / "executed").exists()
    (lab_dir / "params/models/other.yaml").write_text("source: data/weights/none\ncontext_limit: 512\n")
    view = widgets.start("quick", models=["other"])
    until(lambda: not view.refresh())
    assert "The grid did not begin" in text(view) and "data/weights/none" in text(view)

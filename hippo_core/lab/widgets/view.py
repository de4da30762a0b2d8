"""The widget: a view that follows a grid's status file while the kernel does other work."""

import asyncio
import signal
import subprocess
from pathlib import Path

import ipywidgets

from hippo_core.lab.grid.progress.output import Output
from hippo_core.lab.grid.progress.status import Status, absent, look
from hippo_core.lab.widgets.page import Stage, body, head

EVERY = 1.0  # seconds between two looks
OVER: tuple[Stage, ...] = ("ended", "stopped", "gone", "idle", "refused")


def watch(run_id: str) -> "GridView":
    """Show how the grid of a run comes along, wherever it was started; where none runs yet, the view waits for one."""
    return GridView(run_id)


class GridView(ipywidgets.VBox):
    """A live view of a run's grid. It follows by itself where a kernel's loop runs, until the grid ends or the view is closed.

    `process` is a grid that was started for it, which the Stop button interrupts; `output` is where that grid prints to.
    """

    following: "asyncio.Task[None] | None" = None

    def __init__(self, run_id: str, process: "subprocess.Popen[bytes] | None" = None, output: Path | None = None) -> None:
        self.run_id, self._process, self._output, self._stopping = run_id, process, output, False
        self._head, self._body = ipywidgets.HTML(), ipywidgets.HTML()
        self._button = ipywidgets.Button(description="Stop", icon="stop", tooltip="Stop the grid as Ctrl-C does; what is finished is kept")
        self._button.layout.width = "104px"
        self._button.on_click(self.stop)
        row = [self._head] if process is None else [self._head, self._button]
        top = ipywidgets.HBox(row, layout={"justify_content": "space-between", "align_items": "center", "min_height": "34px"})
        super().__init__([top, self._body], layout={"max_width": "860px"})
        loop = _loop() if self.refresh() else None
        if loop:
            self.following = loop.create_task(self._follow())

    def refresh(self) -> bool:
        """Look at the status file once; whether there is more to come."""
        status, works = look(self.run_id)
        if self._process and status and status.pid != self._process.pid:  # of a grid before this one
            status, works = None, False
        stage = self._stage(status, works)
        note = absent(self.run_id, status) if stage in ("waiting", "stopped", "gone") else ""
        self._head.value = head(self.run_id, stage, status.failed if status else 0)
        self._body.value = body(stage, status, note, self._printed() if stage in ("idle", "refused") else "")
        self._button.disabled = self._stopping
        self._button.layout.display = "none" if stage in OVER else ""
        return stage not in OVER

    def stop(self, *_: object) -> None:
        """Interrupt the grid that was started for this view: it ends its kernels and keeps what is finished."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._stopping = True
            self.refresh()

    def close(self) -> None:
        """Take the view away; the grid goes on."""
        if self.following:
            self.following.cancel()
        super().close()

    async def _follow(self) -> None:
        while self.refresh():
            await asyncio.sleep(EVERY)

    def _stage(self, status: Status | None, works: bool) -> Stage:
        code = self._process.poll() if self._process else None
        if status is None:
            return "waiting" if self._process is None else "starting" if code is None else "refused" if code else "idle"
        if works:
            return "stopping" if self._stopping else "running"
        return "gone" if status.state == "running" else status.state

    def _printed(self) -> str:
        printed = Output()
        printed.write(self._output.read_text(encoding="utf-8", errors="replace") if self._output else "")
        return "\n".join(printed.lines)


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

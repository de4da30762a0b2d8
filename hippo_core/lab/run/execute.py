"""Run one cell: its notebook by papermill, in a kernel of its own, into a folder that becomes its record when all went well."""

import os
import shutil
import tempfile
import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock
from typing import Any, Literal

import psutil
from rich.ansi import AnsiDecoder

from hippo_core.errors import LabError
from hippo_core.files import FULL, root, write_json
from hippo_core.lab import process_env
from hippo_core.lab.run import fingerprints, notebook_files, record_files
from hippo_core.lab.run.cells import Cell
from hippo_core.lab.warm import NAME as WARM
from hippo_core.protocols.base.parameters import RECORD_FIELDS
from hippo_core.results.records import RUNS, begin_record, is_complete, read_meta
from hippo_core.results.records.origin import git_sha, versions

Kernel = Literal["warm", "cold"]  # forked from a server that has imported what cells need (see lab/warm), or an ordinary one
KERNELS: dict[Kernel, str] = {"warm": WARM, "cold": "python3"}
USABLE = 0.9  # of the machine's memory is for cells
CGROUP = Path("/sys/fs/cgroup/memory.max")
OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "unable to allocate", "cannot allocate memory")
LINES, WIDTH = 20, 500  # what is kept: lines, and characters of a line


@dataclass(frozen=True)
class ExecutionOptions:
    """How cells are run: the kind of their kernels, the threads of each, how many seconds one step of a notebook may take and how many
    GB of memory a kernel (None: any), and the address of an archive that records are copied to (empty: none)."""

    kernel: Kernel = "cold"
    threads: int = 1
    timeout: int | None = None
    memory: float | None = None
    archive: str = ""


DEFAULTS = ExecutionOptions()


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: done; failed, by an error that its notebook raised; crashed, where its kernel died, hung or never came. `message`:
    the error's last line; `notebook`: where it happened; both empty when all went well."""

    cell: Cell
    state: Literal["done", "failed", "crashed"]
    seconds: float
    message: str = ""
    notebook: str = ""


class Output:
    """What a running cell says: a file that any thread may write to, which keeps its last lines; a carriage return begins the line again.
    Escapes of a terminal are taken out when the lines are read."""

    def __init__(self) -> None:
        self._ended: deque[str] = deque(maxlen=LINES)
        self._open = ""
        self._lock = Lock()

    def write(self, text: str) -> int:
        """Take a piece of output."""
        with self._lock:
            *ended, last = (self._open + text).split("\n")
            self._ended.extend(line for line in map(_overwritten, ended) if line.strip())
            self._open = _overwritten(last) + "\r" * last.endswith("\r")
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    @property
    def lines(self) -> list[str]:
        """The last lines, plain text, the newest last; it may still grow."""
        with self._lock:
            lines = [*self._ended, _overwritten(self._open)]
        return [line for line in map(_plain, lines) if line][-LINES:]

    @property
    def line(self) -> str:
        """The last line; empty where nothing was said."""
        return self.lines[-1].strip() if self.lines else ""


def _overwritten(line: str) -> str:
    """What stands in a line in the end: the text after the last carriage return that has any."""
    return next((piece for piece in reversed(line.split("\r")) if piece), "")[:WIDTH]


def _plain(line: str) -> str:
    shown = AnsiDecoder().decode_line(line).plain.expandtabs(4)
    return "".join(letter if letter.isprintable() else " " for letter in shown).rstrip()


def execute(cell: Cell, output: Output, stopping: Event, execution: ExecutionOptions = DEFAULTS) -> Outcome:
    """Run a cell and keep its record, or, where it fails, its notebook and its error. A record that somebody has finished meanwhile stays;
    nothing is kept where `stopping` is set by the time it ends. A full disk raises LabError, for no cell can go on then."""
    started = time.monotonic()
    try:
        if is_complete(cell.record):
            return Outcome(cell, "done", 0.0)
        folder = record_files.open_folder(cell.record)
        outcome = _attempt(cell, folder, output, started, execution)
        if stopping.is_set() or is_complete(cell.record):
            shutil.rmtree(folder)
            return outcome
        if outcome.state == "done":
            write_json(folder / "meta.json", {**read_meta(folder), "cell_seconds": round(outcome.seconds, 3), "kernel": execution.kernel})
            record_files.keep(folder, cell.record)
        else:
            notebook = record_files.keep_failed(folder, cell.record, outcome.message)
            outcome = replace(outcome, notebook=record_files.short(notebook))
        return _copied(outcome, execution.archive)
    except OSError as error:
        full = disk_full(cell) if error.errno in FULL else None  # before space is freed
        record_files.discard(cell.record)
        if full:
            raise full from None
        return Outcome(cell, "failed", time.monotonic() - started, f"{type(error).__name__}: {error}")


def _copied(outcome: Outcome, archive: str) -> Outcome:
    """The same, when what the cell left is in the archive too; failed where it cannot be copied there."""
    if not archive:
        return outcome
    from hippo_core.results.records.archive import Archive

    try:
        Archive(archive).push(outcome.cell.record)
    except LabError as error:
        return replace(outcome, state="failed", message=outcome.message or f"{error}; it is kept here and copied by the next call")
    return outcome


def _attempt(cell: Cell, folder: Path, output: Output, started: float, execution: ExecutionOptions) -> Outcome:
    message, crashed = "", False
    try:
        if not cell.experiment:
            begin_record(folder, *_plain_origin(cell))
        run_notebook(
            notebook_files.notebook_path(cell.notebook),
            folder / record_files.NOTEBOOK,
            papermill_parameters(cell, folder),
            output,
            execution,
        )
        message = "" if read_meta(folder)["cell"] == cell.id else "code or settings were changed while the grid ran; call it again"
    except Exception as error:  # whatever a notebook or its kernel raises fails this cell and no other
        message, crashed = reason(error), is_crash(error)
        if isinstance(error, OSError) and not crashed:  # a timeout counts as one
            raise
        if any(f"[Errno {number}]" in message for number in FULL):
            raise OSError(FULL[0], message) from None
    state = "crashed" if crashed else "failed" if message else "done"
    return Outcome(cell, state, time.monotonic() - started, message)


def reason(error: Exception) -> str:
    """The last line of what went wrong in a notebook, without the traceback that stands in the notebook itself."""
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    if isinstance(error, PapermillExecutionError):
        return f"{error.ename}: {' '.join(error.evalue.split())}"
    words = " ".join(str(error).split())
    if isinstance(error, CellTimeoutError):
        return "a step of the notebook took longer than the grid's timeout"
    return f"the kernel died: {words}" if isinstance(error, DeadKernelError) else f"{type(error).__name__}: {words}"


def is_crash(error: Exception) -> bool:
    """Whether what went wrong is not the notebook's own error: another attempt may go well."""
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    no_kernel = isinstance(error, RuntimeError) and str(error).startswith("Kernel d")  # "died before replying", "didn't respond"
    name, words = getattr(error, "ename", ""), str(getattr(error, "evalue", "")).lower()
    no_memory = "MemoryError" in name or any(sign in words for sign in OUT_OF_MEMORY)  # of the machine or of a GPU
    return no_kernel or no_memory or isinstance(error, CellTimeoutError | DeadKernelError)


def run_notebook(source: Path, target: Path, parameters: dict[str, Any], output: Output, execution: ExecutionOptions = DEFAULTS) -> None:
    """Execute a notebook file; its parameters are checked against its own first, for papermill only warns of unknown ones."""
    import papermill

    notebook_files.check_values(source, parameters)
    process_env.arrange()
    quiet = ["--log-level=50"]  # a kernel's own log would run through the table; what goes wrong in a cell stands in the notebook
    quiet += ["--HistoryManager.hist_file=:memory:"]  # else every kernel writes to one data base, and to the user's own history
    # RLIMIT_DATA (heap and private writable mappings) and not the address space, of which torch reserves far more than it uses
    limits = f"__import__('resource').setrlimit(__import__('resource').RLIMIT_DATA, ({int((execution.memory or 0) * 1e9)},) * 2)"
    limited = [f"--IPKernelApp.exec_lines={limits}"] if execution.memory else []  # more is a MemoryError in the notebook
    patience: dict[str, Any] = {"start_timeout": 300, "iopub_timeout": 60}  # seconds; a busy machine is no error
    names = {
        "kernel_name": KERNELS[execution.kernel],
        "execution_timeout": execution.timeout,
        "progress_bar": False,
        "stdout_file": output,
        "extra_arguments": quiet + limited,
    }
    try:
        papermill.execute_notebook(str(source), str(target), parameters=parameters, **names, **patience)
    finally:
        notebook_files.shorten_paths(target)


def papermill_parameters(cell: Cell, folder: Path) -> dict[str, Any]:
    """The parameters of a cell as papermill gets them, with the folder that its record grows in where its notebook asks for it."""
    known = notebook_files.defaults(notebook_files.notebook_path(cell.notebook))
    parameters = {name: value for name, value in cell.parameters.items() if name in known or name not in RECORD_FIELDS}
    return parameters | ({"record_dir": record_files.short(folder)} if "record_dir" in known else {})


def _plain_origin(cell: Cell) -> tuple[dict[str, Any], dict[str, Any]]:
    parameters = {name: value for name, value in cell.parameters.items() if name not in RECORD_FIELDS}
    meta = {"git_sha": git_sha(), "config_hash": fingerprints.digest(parameters), "cell": cell.id, "phase": cell.phase}
    return {"parameters": parameters}, meta | {"parameters": cell.parameters, "versions": versions()}


def disk_full(cell: Cell) -> LabError:
    """The error for a full disk; it says which, where that can be seen."""
    full = [path for path in (str(root() / RUNS), tempfile.gettempdir()) if shutil.disk_usage(path).free < 1 << 20]
    where = f" at {' and '.join(full)}" if full else ""
    return LabError(f"the disk is full{where} (while running {cell.label}); free some space and call again: finished records are kept")


def fix_threads(threads: int) -> None:
    """Every kernel that is started from now on computes with this many threads, whatever the number of jobs is."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def kernel_memory_limit(jobs: int) -> float:
    """GB for a kernel on this machine or in the part of it that this process is confined to: all of it alone, a half beside others, however
    many: cells are seldom at their peaks together."""
    total = psutil.virtual_memory().total
    confined = CGROUP.read_text().strip() if CGROUP.is_file() else "max"
    return USABLE * min(total, int(confined) if confined.isdigit() else total) / min(jobs, 2) / 1e9

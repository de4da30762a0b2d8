"""What a cell of a grid costs besides its work: an ordinary papermill kernel, a warm one, and ploomber-engine, which has no kernel.

python benchmarks/grid/overhead.py [CELLS] [GRID]        (after `make peers`, which brings ploomber-engine)

1. One notebook that does nothing, and one that imports what a cell of the lab imports, in turn; medians and extremes of the rounds.
2. CELLS of the second kind (100), two at a time, in warm kernels.
3. GRID (smoke; `none` leaves it out), two jobs, cold and warm, each into a fresh run that is removed afterwards.
The last line is the ratio of a warm to an ordinary kernel for the notebook with the lab's imports.
"""

import contextlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import nbformat
import papermill

from hippo_core.files import root
from hippo_core.lab.run.execute import KERNELS, Kernel, fix_threads
from hippo_core.lab.warm import client, spec
from hippo_core.results.records import run_folder

ROUNDS, JOBS = 7, 2
IMPORTS = "import peft, torch, transformers\nfrom hippo_core import lab, models\nfrom hippo_core.evaluation import run"
SOURCES = {"nothing": "x = 1", "the lab's imports": IMPORTS}


def write(folder: Path, name: str, source: str) -> Path:
    """A notebook of a parameters cell and one more."""
    cells = [nbformat.v4.new_code_cell("n = 0", metadata={"tags": ["parameters"]}), nbformat.v4.new_code_cell(source)]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}, "language_info": {"name": "python"}}
    path = folder / f"{name.replace(' ', '-')}.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=about), path)
    return path


def by_papermill(path: Path, kernel: Kernel, number: int = 0) -> float:
    """Seconds of one execution in a kernel of its own."""
    begin = time.perf_counter()
    out = path.with_name(f"{path.stem}-{number}.out.ipynb")
    quiet = ["--log-level=50"]
    papermill.execute_notebook(str(path), str(out), {"n": 1}, kernel_name=KERNELS[kernel], progress_bar=False, extra_arguments=quiet)
    return time.perf_counter() - begin


def by_ploomber(path: Path) -> float:
    """Seconds of one execution in this process: after the first, the imports are there."""
    os.environ["PLOOMBER_STATS_ENABLED"] = "false"
    from ploomber_engine import execute_notebook

    begin = time.perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):
        execute_notebook(str(path), str(path.with_suffix(".out.ipynb")), parameters={"n": 1}, progress_bar=False)
    return time.perf_counter() - begin


def cells(folder: Path) -> float:
    """The overhead of a cell by each way; returns warm / cold for the notebook with the lab's imports."""
    modes: dict[str, Callable[[Path], float]] = {
        "papermill, ordinary kernel": lambda path: by_papermill(path, "cold"),
        "papermill, warm kernel": lambda path: by_papermill(path, "warm"),
    }
    if importlib.util.find_spec("ploomber_engine"):
        modes["ploomber-engine, no kernel"] = by_ploomber
    else:
        print("ploomber-engine is not installed: make peers")
    ratio = 1.0
    for name, source in SOURCES.items():
        path = write(folder, name, source)
        times = {mode: [] for mode in modes}
        for call in modes.values():
            call(path)  # the server's imports and the page cache
        for _ in range(ROUNDS):
            for mode, call in modes.items():
                times[mode].append(call(path))
        print(f"a notebook with {name}, {ROUNDS} rounds")
        for mode, seconds in times.items():
            print(f"  {mode:28} {median(seconds):6.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")
        ratio = median(times["papermill, warm kernel"]) / median(times["papermill, ordinary kernel"])
    return ratio


def many(folder: Path, count: int) -> None:
    """So many notebooks with the lab's imports, in warm kernels, on two workers."""
    path = write(folder, "one of many", IMPORTS)
    begin = time.perf_counter()
    with ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(lambda number: by_papermill(path, "warm", number), range(count)))
    took = time.perf_counter() - begin
    print(f"{count} notebooks with the lab's imports, {JOBS} at a time, warm: {took:.1f} s, {took / count:.2f} s a notebook")


def grids(name: str) -> None:
    """A grid of the lab by both kinds of kernel."""
    times = {}
    for kernel in KERNELS:
        run = f"bench-{kernel}"
        shutil.rmtree(run_folder(run), ignore_errors=True)
        begin = time.perf_counter()
        words = ["grid", name, "--jobs", str(JOBS), "--run-id", run, "--kernel", kernel]
        subprocess.run([sys.executable, "-m", "hippo_core", *words], cwd=root(), check=True, stdout=subprocess.DEVNULL)
        times[kernel] = time.perf_counter() - begin
        print(f"grid {name}, {JOBS} jobs, {kernel}: {times[kernel]:.0f} s", flush=True)
    both = [str(run_folder(f"bench-{kernel}")) for kernel in KERNELS]
    subprocess.run([sys.executable, "-m", "hippo_core", "records", "diff", *both], cwd=root(), check=False)
    print(f"grid {name}: warm / cold {times['warm'] / times['cold']:.2f}")
    for kernel in KERNELS:
        shutil.rmtree(run_folder(f"bench-{kernel}"))
        shutil.rmtree(root() / "reports" / f"bench-{kernel}", ignore_errors=True)


def main(count: int = 100, grid: str = "smoke") -> None:
    """All three."""
    fix_threads(1)
    spec.install()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        by_papermill(write(Path(folder), "first", "x = 1"), "warm")
        print(f"the first warm kernel, with the server's imports: {time.perf_counter() - begin:.1f} s")
        ratio = cells(Path(folder))
        many(Path(folder), count)
    client.close()
    if grid != "none":
        grids(grid)
    print(f"warm/cold ratio {ratio:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])

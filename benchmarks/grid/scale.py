"""The lab with many records: how long it takes to plan and to resume a grid of a thousand cells, and to report ten thousand records.

python benchmarks/grid/scale.py [ROWS] [RECORDS]        (20 rows a record, 10,000 records)

A lab in a temporary folder is filled with made-up records in the form of real ones: every suite under every preset, in as many seeds as it
takes. Their texts are those of the reference records; which answers are right is drawn, and every tenth seed is alike.
1. `grid-plan` where none, half and all of a thousand cells have records, and again with RECORDS records of another run beside them.
2. `grid` where all cells have records, and where one has none: until that one starts.
3. `report` on the RECORDS records: a kernel, the report, and what its notebook shows below it. And the dashboard's panels on them.
"""

import csv
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pandas as pd

from hippo_core.evaluation.table import ITEMS, asked_metrics
from hippo_core.files import root
from hippo_core.lab.grid.expand import expand
from hippo_core.lab.run import notebook
from hippo_core.lab.run.cells import Cell
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.results.records import begin_record, finish_record, run_folder, seal

ROUNDS, CELLS, SAME_CELLS = 3, 1000, 10
REFERENCE = root() / "executed/example"
SKILL = {"core": 0.6, "span_short": 0.9, "longctx": 0.7, "rag_bm25": 0.85, "rag_dense": 0.6, "rag_hybrid": 0.87, "oracle": 0.97}
GRID = """
title: made-up records
blocks:
  - suites: &suites [episodic, episodic_multi, episodic_cross, episodic_capacity, semantic, spatial, babi]
    presets: [baselines/core, baselines/span_short, baselines/rag_bm25, baselines/rag_dense, baselines/rag_hybrid, baselines/longctx,
      controls/oracle, controls/random_facts]
    sizes: [{rows}]
    seeds: {seeds}
  - suites: *suites
    presets: [baselines/span_short, baselines/rag_bm25, baselines/rag_dense, baselines/rag_hybrid]
    splits: [val]
    sizes: [{rows}]
    seeds: [0]
"""


def make_lab(folder: Path) -> None:
    """A lab with this repository's code, notebooks and settings, and no record."""
    for name in ("hippo_core", "notebooks", "requirements.lock", "data/weights"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(root() / name)
    shutil.copytree(root() / "params", folder / "params")
    os.environ["HIPPO_ROOT"] = str(folder)


def make_grid(name: str, rows: int, cells: int) -> tuple[Cell, ...]:
    """A grid of at least so many cells, expanded."""
    path = root() / f"params/grids/{name}.yaml"
    path.write_text(GRID.format(rows=rows, seeds=[0]))
    seeds = -(-cells // sum(bool(cell.experiment) and cell.parameters["split"] == "test" for cell in expand(name).cells))
    path.write_text(GRID.format(rows=rows, seeds=list(range(seeds))))
    return expand(name).cells


def fill(cells: Iterable[Cell]) -> None:
    """Write the records of cells, without waiting for the disk: nobody will need them after a power cut."""
    by_size: dict[int, list[Cell]] = {}
    for cell in cells:
        by_size.setdefault(cell.parameters["seed"] % SAME_CELLS, []).append(cell)
    os.fsync = lambda _: None
    notebook.git_sha, notebook.versions = cache(notebook.git_sha), cache(notebook.versions)
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        list(pool.map(write, by_size.values()))


def write(cells: Sequence[Cell]) -> None:
    """The records of cells in which the same answers are right."""
    for cell in cells:
        if cell.experiment:
            parameters = load_experiment(cell.experiment).parameters(**cell.parameters)
            begin_record(cell.record, *notebook.describe_run(cell, parameters, ITEMS))
            rows, metrics = measured(
                parameters.suite, parameters.preset, parameters.regime, parameters.split, parameters.n, parameters.seed % SAME_CELLS
            )
            added = {"seconds": 4.0, "device": "cpu", "stages": ["test"], "cell_seconds": 5.0}
            finish_record(cell.record, rows, metrics | {"seed": parameters.seed}, added)
        else:
            parameters = {
                "cell": cell.id,
                "phase": cell.phase,
                "parameters": cell.parameters,
                "experiment": cell.experiment,
                "cell_seconds": 2.0,
            }
            begin_record(cell.record, {"parameters": cell.parameters}, parameters)
        os.link(root() / "notebook.ipynb", cell.record / "notebook.ipynb")
        seal(cell.record)


@cache
def measured(suite: str, preset: str, regime: str, split: str, n: int, draw: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Rows and metrics of a cell whose preset answers as many questions as it usually does, given the words of a real record."""
    random, name = Random(f"{suite} {preset} {regime} {draw}"), preset.split("/")[1]
    skill = 0.05 if name in ("core", "span_short", "random_facts") and regime == "delayed" else SKILL[name]
    rows = [_row(words_of_item, suite, split, random.random() < skill) for words_of_item in words(name)[:n]]
    return (table := pd.DataFrame(rows)), asked_metrics(table, suite, n, draw, preset, 4.0)


@cache
def words(name: str) -> list[dict[str, Any]]:
    """The rows of a real record; of one that ranks facts for a preset that does."""
    (path,) = REFERENCE.glob(f"*/{'rag_bm25' if 'rag' in name else 'oracle'}/*/*/*/metrics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{key: value if key in ITEMS.text else float(value or "nan") for key, value in row.items()} for row in rows]


def _row(item: dict[str, Any], suite: str, split: str, right: bool) -> dict[str, Any]:
    """A row with its question's answer or with another one."""
    score = dict.fromkeys(("em_raw", "em_norm", "f1", "score"), float(right))
    ids = {name: item[name].replace("test", split) for name in ("item_id", "world")}
    rung = {} if suite.startswith(("episodic", "semantic")) else {"rung": "exact"}
    return item | score | ids | rung | {"pred": item["answer"] if right else "nobody", "question": f"{item['question']} ({suite})"}


def seconds(*arguments: str, rounds: int = ROUNDS) -> float:
    """How long a command of the lab takes by the clock: the median of some rounds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "hippo_core", *arguments], cwd=root(), check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return median(times)


def until_first(name: str, run: str, missing: Path) -> float:
    """Seconds from the call of `grid` until the folder of the cell that has no record is opened; the grid is stopped then."""
    begin = time.perf_counter()
    running = subprocess.Popen([sys.executable, "-m", "hippo_core", "grid", name, "--run-id", run], cwd=root(), stderr=subprocess.DEVNULL)
    while running.poll() is None and not any(missing.parent.glob(f".{missing.name}.*")):
        time.sleep(0.01)
    took = time.perf_counter() - begin
    running.send_signal(signal.SIGINT)
    running.wait()
    return took


def plan(beside: str) -> None:
    """Plan the grid in each of its three states."""
    times = {state: seconds("grid-plan", "thousand", "--run-id", state) for state in ("none", "half", "all")}
    print(f"grid-plan, {beside}: {', '.join(f'{took:.2f} s ({state} have records)' for state, took in times.items())}", flush=True)


def resume(missing: Cell) -> None:
    """Call a finished grid again, first as it is, then without one of its records."""
    print(f"grid, nothing to be done: {seconds('grid', 'thousand', '--run-id', 'all'):.2f} s", flush=True)
    shutil.rmtree(missing.record)
    took = median(until_first("thousand", "all", missing.record) for _ in range(ROUNDS))
    print(f"grid, one record missing: its cell starts after {took:.2f} s", flush=True)


def report(run: str) -> None:
    """Report a run, and say how large the report is."""
    took = seconds("report", run, rounds=1)
    files = [path.stat().st_size for path in (root() / "reports" / run).rglob("*") if path.is_file()]
    index = (root() / "reports" / run / "index.html").stat().st_size
    sizes = f"{len(files)} files, {sum(files) / 1e6:.0f} MB, its page {index / 1e6:.1f} MB"
    count = sum(1 for _ in run_folder(run).rglob("metrics.csv"))
    print(f"report of {count} records: {took:.1f} s; {sizes}", flush=True)


def panels(run: str) -> None:
    """Open the dashboard's panels of finished runs on a run, each once, and choose two conditions of a suite."""
    from hippo_core.dashboard.ablate import AblatePanel
    from hippo_core.dashboard.compare import ComparePanel

    begin = time.perf_counter()
    compare = ComparePanel(root() / "executed")
    compare.select(run)
    opened = time.perf_counter()
    AblatePanel(root() / "executed").fill(wanted={"run": run})
    ablated = time.perf_counter()
    compare.select(run, a="baselines/rag_bm25", b="baselines/rag_dense")
    times = {"Compare opens": opened - begin, "Ablate opens": ablated - opened, "other conditions": time.perf_counter() - ablated}
    print(f"dashboard: {', '.join(f'{name} {took:.2f} s' for name, took in times.items())}", flush=True)


def main(rows: int = 20, records: int = 10_000) -> None:
    """All of it, in a lab of its own."""
    with tempfile.TemporaryDirectory() as folder:
        make_lab(Path(folder))
        shutil.copy(next(REFERENCE.glob("*/oracle/*/*/*/notebook.ipynb")), root())
        cells = make_grid("thousand", rows, CELLS)
        print(f"a grid of {len(cells)} cells, {rows} rows a record, {os.cpu_count()} cores", flush=True)
        fill(expand("thousand", "half").cells[::2])
        fill(expand("thousand", "all").cells)
        report("all")
        plan("no other run")
        resume(expand("thousand", "all").cells[-1])
        fill(make_grid("many", rows, records))
        plan(f"another run with {records} records")
        report("many")
        panels("many")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

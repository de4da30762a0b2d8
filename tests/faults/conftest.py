"""Fault tests disturb a quick grid as the world does: by kills, full disks, many cells at once. `make test` runs a short slice of them,
`make test-faults` all: FAULT_ROUNDS kills of every victim, FAULT_CELLS cells at once, moments drawn from FAULT_SEED.

Here is the grid that they disturb, and what must be true when it has ended after all.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from hippo_core.files import sha256
from hippo_core.results import records
from hippo_core.results.records.paths import record_folders
from tests.lab.conftest import make_lab
from tests.lab.running import lab, none_left
from tests.store.test_against_a_list import QUICK

ROUNDS, CELLS, SEED = (int(os.environ.get(f"FAULT_{name}", default)) for name, default in (("ROUNDS", 1), ("CELLS", 200), ("SEED", 1)))
LONG = ROUNDS > 1
SEEDS = (1, 2) if LONG else (1,)
RECORDS = 1 + 4 * len(SEEDS)  # the report; of each seed a data set and three cells
GRID = f"""
title: quick cells to be disturbed
blocks:
  - suites: [episodic]
    presets: [baselines/span_short, baselines/rag_bm25]
    models: [model]
    sizes: [4]
    seeds: {list(SEEDS)}
"""


def before(lab_path):
    """A lab with the grid, in which nothing has run."""
    (make_lab(lab_path) / "params/grids/faults.yaml").write_text(GRID)
    return lab_path


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """A lab whose grid has run with nothing in its way."""
    lab_path = before(tmp_path_factory.mktemp("undisturbed") / "lab")
    ran = lab(lab_path, "grid", "faults")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return lab_path


@pytest.fixture
def fresh(tmp_path):
    """The same lab before anything ran."""
    return before(tmp_path / "lab")


@pytest.fixture
def quick():
    """A folder on a disk in memory, where there is one: for what must not be lost by a kill alone."""
    with tempfile.TemporaryDirectory(dir=QUICK if QUICK.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def temporary():
    """A folder for TMPDIR, with a short path as such folders have; at the end nothing may be in it."""
    lab_path = Path(tempfile.mkdtemp(prefix="tmp-"))
    yield lab_path
    left = sorted(lab_path.rglob("*"))
    shutil.rmtree(lab_path)
    assert left == []


def finished(lab_path):
    """The checksum of every file of every finished record; without the report, which a later call makes anew over more records."""
    run = lab_path / "executed/faults"
    files = [file for record in record_folders(run) for file in record.iterdir()] if run.is_dir() else []
    return {file.relative_to(run): sha256(file) for file in files if file.relative_to(run).parts[0] != "report"}


def assert_as_if_undisturbed(lab_path, undisturbed, seen=None):
    """All is there, whole and equal to what an undisturbed run gives, nothing else is there, and nothing runs any more.

    `seen`: where the lab's files are seen, if not at their place.
    """
    run = (seen or lab_path) / "executed/faults"
    assert records.verify(run) == (RECORDS, [])
    count, differences = records.diff(undisturbed / "executed/faults", run)
    assert ([str(difference) for difference in differences], count) == ([], RECORDS)
    assert leftovers(seen or lab_path) == []
    assert none_left(lab_path)


def leftovers(lab_path):
    """Hidden files and folders, and records without an end, of killed runners and kernels."""
    folders = [lab_path / name for name in ("executed", "reports", "data/generated")]
    hidden = [path for folder in folders for path in folder.rglob(".*") if path.name not in (".lock", ".progress.json")]
    return hidden + [path.parent for path in (lab_path / "executed").rglob("meta.json") if not (path.parent / records.DONE).exists()]

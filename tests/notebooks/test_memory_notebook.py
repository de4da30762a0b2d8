"""The memory's notebook hands the right worlds to the right part: its code cells run here, on the few questions of a dry run."""

import json
import shutil

import pytest

from hippo_core.experiments import parameters
from hippo_core.files import root, sha256
from hippo_core.lab.run import fingerprints, notebook_files
from hippo_core.store import TraceStore
from hippo_core.suites.datasets.build import write_dataset

GATED = {"mode": "teach", "preset": "memory/hei_nw_gated", "dry_run": True}
ITEMS = parameters.DRY_ITEMS


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A root of its own for what the notebook writes, with the repository's code, weights and parameters linked into it."""
    for name in ("hippo_core", "params", "notebooks", "requirements.lock", "data/weights"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(root() / name)
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    fingerprints.forget()
    yield tmp_path
    fingerprints.forget()
    parameters.forget()


def taught():
    """What the notebook's cells, but for the figure, leave when a gate teaches: the rows, and the calibration that its store keeps."""
    path = notebook_files.notebook_path("03_memory")
    space = {**notebook_files.defaults(path), **GATED}
    for source in notebook_files.code(path)[:-1]:
        exec(source, space)
    with TraceStore.open(space["cell"].store, space["session"], read_only=True) as store:
        return space["rows"], store.meta["calibration"]


def swap(split, seed):
    """Put the worlds of another seed in the place of a split's worlds on the disk."""
    mine, other = (write_dataset("episodic", n=ITEMS, seed=seed) for seed in (1337, seed))
    shutil.rmtree(mine / split)
    shutil.copytree(other / split, mine / split)
    names = json.loads((mine / "checksums.json").read_text())
    (mine / "checksums.json").write_text(json.dumps({name: sha256(mine / name) for name in names}))


def test_a_gate_is_calibrated_on_validation_worlds_and_judges_test_worlds(place):
    rows, calibration = taught()
    assert calibration["samples"] == len(rows) == 32
    swap("test", seed=7)
    others, same = taught()
    assert same == calibration
    assert others["S"].tolist() != rows["S"].tolist()
    swap("val", seed=7)
    again, other = taught()
    assert other["tau"] != calibration["tau"] and other["mean"] != calibration["mean"]
    assert again["surprise"].tolist() == others["surprise"].tolist()

"""Many more cells at once than cores: all are done at the first attempt, and every record holds what its own parameters ask for."""

import json

import pytest
import yaml

from hippo_core.results import records
from hippo_core.suites.draw import worlds
from tests.faults.conftest import CELLS, LONG
from tests.lab.conftest import make_lab
from tests.lab.running import lab, none_left

SEEDS = (1, 2, 3, 4)
FEW_FILES = ("sh", "-c", 'ulimit -Sn 1024; exec "$@"', "sh")  # open at once: what many systems start a process with
# Every cell waits until all are there, prints its parameters and writes them into its rows.
MEET = """
import os, pathlib, time
here = pathlib.Path(os.environ["HIPPO_ROOT"]) / "here"
here.mkdir(exist_ok=True)
(here / str(os.getpid())).touch()
while len(list(here.iterdir())) < ALL:
    time.sleep(1)
print(seed, overrides)
"""


@pytest.mark.skipif(not LONG, reason="`make test-faults` runs 200 at once")
def test_many_cells_at_once_are_done_and_keep_apart(tmp_path, temporary):
    lab_path = make_lab(tmp_path / "lab")
    cells = CELLS // len(SEEDS) * len(SEEDS)
    prepare(lab_path, cells)
    ran = lab(lab_path, "grid", "many", "--jobs", str(cells), before=FEW_FILES, limit=540, TMPDIR=str(temporary))
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    assert ran.stderr == "", ran.stderr
    assert "once more, alone" not in ran.stdout
    assert f"{cells + len(SEEDS) + 1} done, 0 skipped, 0 failed" in ran.stdout
    assert records.verify(lab_path / "executed/many") == (cells + len(SEEDS) + 1, [])  # with the data sets and the report
    checked = [assert_its_own(record) for record in records.records_of(lab_path / "executed/many")]
    assert len(set(checked)) == len(checked) == cells
    assert none_left(lab_path)


def prepare(lab_path, cells):
    """A grid of so many cells, of some seeds and many variants of a preset, and a notebook that says what it was told."""
    axes = {"suites": ["episodic"], "presets": ["baselines/rag_bm25"], "models": ["model"], "sizes": [4], "seeds": list(SEEDS)}
    grid = {"title": "many", "timeout": 500, "blocks": [{**axes, "overrides": [[f"k={k + 1}"] for k in range(cells // len(SEEDS))]}]}
    (lab_path / "params/grids/many.yaml").write_text(yaml.safe_dump(grid))
    path = lab_path / "notebooks/02_baseline.ipynb"
    notebook = json.loads(path.read_text())
    *_, begin, compute = notebook["cells"]
    begin["source"] += MEET.replace("ALL", str(cells))
    replacements = {'"prompt_tokens": 7': '"prompt_tokens": int(overrides[0][2:])', '"generated_tokens": 2': '"generated_tokens": seed'}
    for default, own in replacements.items():
        assert default in compute["source"]
        compute["source"] = compute["source"].replace(default, own)
    path.write_text(json.dumps(notebook))


def assert_its_own(record):
    """The parameters of a record, after a look whether its rows and what its notebook printed are theirs."""
    parameters = records.read_meta(record)["parameters"]
    seed, overrides = parameters["seed"], parameters["overrides"]
    rows = records.read_rows(record)
    assert set(rows["prompt_tokens"]) == {int(overrides[0][2:])}
    assert set(rows["generated_tokens"]) == {seed}
    assert list(rows["question"]) == [item.question for world in worlds("episodic", n=4, seed=seed) for item in world.items]
    cells = json.loads((record / "notebook.ipynb").read_text())["cells"]
    printed = "".join("".join(output.get("text", "")) for cell in cells for output in cell.get("outputs", []))
    assert printed == f"{seed} {overrides}\n"
    return seed, *overrides

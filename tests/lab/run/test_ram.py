"""A cell that eats memory ends by itself, is tried once more alone, and takes no other cell with it."""

import json

import pytest

from hippo_core.lab.run import ram
from tests.lab.conftest import make_lab
from tests.lab.grid.test_engine import kernels_of, lab

EATS = """import numpy
if "bm25" in preset:
    numpy.ones(10**9)
"""


def test_a_cell_that_eats_memory_fails_alone(tmp_path):
    place = make_lab(tmp_path / "lab")
    grid = place / "params/grids/quick.yaml"
    grid.write_text(grid.read_text() + "memory: 3\n")  # GB; a kernel with all imports takes one
    path = place / "notebooks/02_baseline.ipynb"
    notebook = json.loads(path.read_text())
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "lab.begin" in "".join(cell["source"]))
    code["source"] = EATS + "".join(code["source"])
    path.write_text(json.dumps(notebook))
    ran = lab(place, "grid", "quick", "--kernel", "warm")
    assert ran.returncode == 1
    assert ran.stdout.count("it runs once more, alone") == 1
    assert "MemoryError" in ran.stdout and "(twice, the second time alone)" in ran.stdout
    assert "4 done, 0 skipped, 1 failed" in ran.stdout, ran.stdout
    assert len(list(place.glob("executed/quick/**/notebook.failed.ipynb"))) == 1
    assert kernels_of(place) == []


def test_a_kernel_beside_others_has_half_and_a_confined_one_of_its_part(monkeypatch, tmp_path):
    assert ram.share(1) == pytest.approx(2 * ram.share(2)) == pytest.approx(2 * ram.share(200))
    (tmp_path / "memory.max").write_text("2000000000\n")
    monkeypatch.setattr(ram, "CGROUP", tmp_path / "memory.max")
    assert ram.share(2) == pytest.approx(0.9)
    (tmp_path / "memory.max").write_text("max\n")
    assert ram.share(1) > 1

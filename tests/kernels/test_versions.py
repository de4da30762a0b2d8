"""The caller chooses a version; the reference needs neither numba nor triton; machine code is kept only where that is possible."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import hippo_core
from hippo_core.errors import LabError
from hippo_core.kernels.kwta import kwta
from tests.kernels.calls import CALLS

BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "triton"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""
RUN_ALL = "from tests.kernels.calls import CALLS\nfor call in CALLS.values(): call({impl!r})\n"


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize("kernel", CALLS)
def test_an_unknown_name_lists_the_legal_ones(kernel):
    with pytest.raises(LabError, match=r"unknown impl 'cuda'; legal: cpu, reference, triton"):
        CALLS[kernel]("cuda")


@pytest.mark.parametrize("kernel", CALLS)
def test_triton_without_a_gpu_or_its_interpreter_says_what_there_is(kernel, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(LabError, match=f"{kernel}: impl 'triton' cannot run here.*; available: reference, cpu"):
        CALLS[kernel]("triton")


def test_the_version_for_a_cpu_takes_no_tensors_from_elsewhere():
    with pytest.raises(
        LabError, match="kwta: impl 'cpu' cannot run here: it takes tensors on the CPU, these are on meta; available: reference"
    ):
        kwta(torch.ones(2, 3, device="meta"), 1, "cpu")


def test_the_references_run_without_numba_and_triton():
    done = run(BLOCKED + RUN_ALL.format(impl="reference"))
    assert done.returncode == 0, done.stderr


def test_without_numba_the_cpu_version_is_not_replaced_in_silence():
    asked = ["kwta", "sparse_recall", "hopfield"]
    ask = f"for name in {asked}:\n try: CALLS[name]('cpu')\n except Exception as no: print(no)"
    done = run(f"{BLOCKED}from tests.kernels.calls import CALLS\n{ask}")
    due = [f"{name}: impl 'cpu' cannot run here: No module named 'numba'; available: reference" for name in asked]
    assert done.stdout.splitlines() == due, done.stderr


def test_importing_the_kernels_imports_neither_numba_nor_triton():
    done = run("import sys\nfrom tests.kernels.calls import CALLS\nassert not {'numba', 'triton'} & set(sys.modules)")
    assert done.returncode == 0, done.stderr


def test_the_cpu_version_runs_where_no_machine_code_can_be_kept(tmp_path):
    """As in an installation that cannot be written, with a home that cannot either: files stand where folders would be made."""
    package = tmp_path / "hippo_core"
    shutil.copytree(Path(hippo_core.__file__).parent / "kernels", package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "errors.py"):
        shutil.copy(Path(hippo_core.__file__).parent / name, package / name)
    (package / "kernels" / "kwta" / "__pycache__").write_text("")
    code = "import torch, hippo_core.kernels as kernels; print(kernels.__file__); print(kernels.kwta(torch.tensor([[1.0, 2.0]]), 1))"
    surroundings = {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}", "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, **surroundings}
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout
    assert "tensor([[127]]" in done.stdout
    assert not list(package.rglob("*.nbi"))

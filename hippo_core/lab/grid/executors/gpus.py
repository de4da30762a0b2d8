"""How much of a GPU a cell takes: models declare their memory (`max_memory_gb`), small ones share a GPU, big ones have it alone."""

import shutil
import subprocess
from collections.abc import Iterable

from hippo_core.lab.run.cells import Cell
from hippo_core.models.spec import load_spec

BIG = 0.5  # of a GPU's memory: a model above that runs alone


def shares(cells: Iterable[Cell], gpu_gb: float) -> dict[str, float]:
    """By id of the cell, the part (0 to 1) of a GPU with so much memory that it takes, the whole of one of unknown size (inf); cells that
    need none are left out."""
    cells = [cell for cell in cells if "model" in cell.parameters]
    declared = {model: load_spec(model).max_memory_gb for model in {cell.parameters["model"] for cell in cells}}
    memory = {cell.id: declared[cell.parameters["model"]] for cell in cells}
    return {name: gb / gpu_gb if gb <= BIG * gpu_gb < float("inf") else 1.0 for name, gb in memory.items() if gb}


def memory_gb() -> float:
    """The memory of this machine's smallest GPU in GB, as its driver's own tool tells it; 0 where there is none. CUDA is not opened."""
    if not (tool := shutil.which("nvidia-smi")):
        return 0.0
    query = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    sizes = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
    return min((float(mib) * 2**20 / 1e9 for mib in sizes if mib.isdigit()), default=0.0)

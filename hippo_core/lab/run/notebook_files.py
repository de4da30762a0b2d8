"""What a notebook file says of itself, read without running it: its code, its parameters and their default values."""

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError, unknown
from hippo_core.files import root, write_text
from hippo_core.lab.run.record_files import short
from hippo_core.source_code import parsed


def notebook_names() -> list[str]:
    """The notebooks of the lab, without their ending."""
    return sorted(path.stem for path in (root() / "notebooks").glob("*.ipynb"))


def notebook_path(name: str) -> Path:
    """The file of a notebook of the lab by its name, or of any by its path from the lab's root; LabError with the names that exist
    otherwise."""
    if name.endswith(".ipynb") and (path := root() / name).is_file():
        return path
    if name not in notebook_names():
        raise unknown("notebook", name, notebook_names())
    return root() / "notebooks" / f"{name}.ipynb"


@cache
def cells(path: Path) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """The cells of a notebook: (type, tags, source)."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return tuple((cell["cell_type"], tuple(cell["metadata"].get("tags", ())), "".join(cell["source"])) for cell in content["cells"])
    except (json.JSONDecodeError, KeyError, TypeError):
        raise LabError(f"{path} is not a notebook: expected JSON with cells, each with cell_type, metadata and source") from None


def parameters_cell(path: Path) -> str:
    """The source of the one cell tagged `parameters`."""
    sources = [source for kind, tags, source in cells(path) if kind == "code" and "parameters" in tags]
    if len(sources) != 1:
        raise LabError(f"{path}: expected one code cell tagged 'parameters', found {len(sources)}")
    return sources[0]


def defaults(path: Path) -> dict[str, Any]:
    """The parameters of a notebook with their default values; its parameters cell may hold nothing but `name = literal` lines."""
    values = {}
    for line in parsed(parameters_cell(path)).body:
        if not (isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name)):
            raise LabError(f"{path}: line {line.lineno} of the parameters cell is not `name = literal`")
        try:
            values[line.targets[0].id] = ast.literal_eval(line.value)
        except ValueError:
            raise LabError(f"{path}: {line.targets[0].id} in the parameters cell is not a plain literal") from None
    return values


def code(path: Path) -> list[str]:
    """The source of every code cell but the parameters cell: what a cell's result can depend on besides the values."""
    return [source for kind, tags, source in cells(path) if kind == "code" and "parameters" not in tags]


def check_values(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    """All parameters of a notebook, `values` over its defaults; LabError for an unknown name or another type than the default's."""
    known = defaults(path)
    for name, value in values.items():
        if name not in known:
            raise unknown(f"parameter of {path.stem}", name, known)
        fits = type(value) is type(known[name]) or (isinstance(known[name], float) and type(value) is int) or known[name] is None
        if not fits:
            raise LabError(f"parameter {name} of {path.stem}: expected {type(known[name]).__name__}, got {value!r}")
    return known | values


def shorten_paths(path: Path) -> None:
    """Make the paths relative to the lab's root that papermill wrote into an executed notebook: a record names no folder of a machine."""
    if not path.is_file():  # it was never begun
        return
    content = json.loads(path.read_text(encoding="utf-8"))
    made = content["metadata"].get("papermill", {})
    made.update({name: short(Path(made[name])) for name in ("input_path", "output_path") if made.get(name)})
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n")

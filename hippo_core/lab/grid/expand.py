"""A grid file names axes; expanded, it is a list of cells in order of dependence, each once, those that must coincide left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.experiments import Experiment, experiment_of, load_experiment
from hippo_core.experiments.parameters import Parameters, Positive, Resolved, check, usual_model
from hippo_core.files import LabError, root, unknown
from hippo_core.lab.run.cells import DATASETS, Cell, cells_of
from hippo_core.methods.presets import load_preset
from hippo_core.models.spec import read_mapping, validated

Axis = Annotated[list[str], Field(min_length=1)]


class Block(BaseModel):
    """Axes whose every combination is a cell; what a memory's cells need, to teach and to replay, is added. `overrides`: each inner list is
    one variant. `encoders`: an axis of the presets that read one; without it each says its own. The regime `after_sleep` is one of
    memories. `experiment`: a name or a module path; else the one that suits each preset."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suites: Axis
    presets: Axis
    regimes: list[Literal["immediate", "delayed", "after_sleep"]] = ["immediate", "delayed"]
    sizes: Annotated[list[int | Literal["all"]], Field(min_length=1)] = [50]
    seeds: Annotated[list[int], Field(min_length=1)] = [1337]
    models: Axis = ["hippo-tiny"]
    profiles: Axis = ["default"]
    splits: list[Literal["val", "test"]] = ["test"]
    encoders: list[Literal["own", "minilm"]] = []
    overrides: list[list[str]] = [[]]
    experiment: str = ""


class GridFile(BaseModel):
    """A file of params/grids. `later` lists presets that blocks may name before there is a file for them; `timeout`: seconds that a
    step of a notebook may take; `memory`: GB that a kernel may take, half of the machine unless said.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    threads: Positive = 1
    batch_size: Positive = 32
    timeout: Positive = 7200
    memory: Annotated[float, Field(gt=0)] | None = None
    later: list[str] = []
    blocks: Annotated[list[dict[str, Any]], Field(min_length=1)]


@dataclass(frozen=True)
class Grid:
    """An expanded grid: its cells, data sets first, and how many cells each preset would have that is not there yet."""

    name: str
    title: str
    run_id: str
    cells: tuple[Cell, ...]
    not_there: dict[str, int]
    threads: int
    timeout: int
    memory: float | None


def grid_names() -> list[str]:
    """The grids of params/grids."""
    return sorted(path.stem for path in (root() / "params" / "grids").glob("*.yaml"))


def load_grid(name: str) -> tuple[GridFile, list[Block]]:
    """A grid file and its blocks, checked; LabError for an unknown name or key."""
    if name not in grid_names():
        raise unknown("grid", name, grid_names())
    where = f"params/grids/{name}.yaml"
    file = validated(GridFile, read_mapping(root() / where), where)
    return file, [validated(Block, block, f"{where}, block {number + 1}") for number, block in enumerate(file.blocks)]


def expand(name: str, run_id: str = "", only: tuple[str, ...] = (), models: tuple[str, ...] = (), threads: int | None = None) -> Grid:
    """The cells of a grid. `only` keeps presets that match one of its patterns, `models` replaces the file's axis of models, `threads`
    those that the file gives each cell."""
    (file, blocks), run = load_grid(name), run_id or name
    each = threads or file.threads
    cells_by_id: dict[str, Cell] = {}
    not_there: dict[str, int] = {}
    known = cache(load_preset)
    for number, block in enumerate(blocks):
        for values in _combinations(block, models):
            if only and not any(fnmatch(values["preset"], pattern) for pattern in only):
                continue
            if values["preset"] in file.later and not (root() / "params" / "presets" / f"{values['preset']}.yaml").is_file():
                not_there[values["preset"]] = not_there.get(values["preset"], 0) + 1
                continue
            preset = known(values["preset"])
            if values["regime"] == "after_sleep" and "replay" not in preset.method.stages:
                continue
            experiment = load_experiment(block.experiment) if block.experiment else experiment_of(preset)
            values = {"run_id": run, "threads": each, "batch_size": file.batch_size, **values}
            for overrides in _encoded(preset.settings, values["overrides"], block.encoders):
                where = f"params/grids/{name}.yaml, block {number + 1}"
                resolved = _once({**values, "overrides": overrides}, where, experiment.parameters)
                _add(cells_by_id, experiment, resolved)
    if not cells_by_id and not not_there:
        raise LabError(f"grid {name} has no cell left" + (f" that matches {', '.join(only)}" if only else ""))
    cells = sorted(cells_by_id.values(), key=lambda cell: (cell.phase != DATASETS, cell.phase))
    return Grid(name, file.title, run, tuple(cells), not_there, each, file.timeout, file.memory)


def _combinations(block: Block, models: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Every combination of the axes. A folder of the user's own has the model that reads it, where neither block nor command says one."""
    names = ("model", "suite", "profile", "n", "seed", "split", "preset", "overrides", "regime")
    sets = (models or block.models, block.suites, block.profiles, block.sizes, block.seeds, block.splits)
    for values in product(*sets, block.presets, block.overrides, block.regimes):
        cell: dict[str, Any] = dict(zip(names, values, strict=True))
        yield cell if models or "models" in block.model_fields_set else {**cell, "model": usual_model(cell["suite"])}


def _encoded(settings: Any, overrides: list[str], encoders: Sequence[str]) -> list[list[str]]:
    """The overrides with each encoder, for a preset that has such a setting; its own encoder needs no override."""
    if not encoders or "encoder" not in type(settings).model_fields:
        return [overrides]
    return [overrides if encoder == settings.encoder else [*overrides, f"encoder={encoder}"] for encoder in encoders]


def _once(values: dict[str, Any], where: str, form: type[Parameters]) -> Resolved:
    """The cell of these values, resolved; where both regimes give the same prompts, the delayed cell stands for both."""
    delayed = check({**values, "regime": "delayed"}, where, form)
    once = delayed.coincides and values["regime"] != "after_sleep"
    return delayed if once else delayed.changed(regime=values["regime"])


def _add(cells_by_id: dict[str, Cell], experiment: Experiment, resolved: Resolved) -> None:
    for cell in cells_of(experiment, resolved):
        other = cells_by_id.setdefault(cell.id, cell)
        if other.parameters != cell.parameters:
            raise LabError(f"'{other.label}' and '{cell.label}' would both write {cell.record}; leave one of them out of the grid")

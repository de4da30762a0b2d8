"""A grid file names axes; expanded, it is a list of cells in order of dependence, each once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import product
from typing import Annotated, Any, get_origin

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.errors import LabError, unknown
from hippo_core.files import root
from hippo_core.lab.run.cells import Cell, cells_of
from hippo_core.models.spec import read_mapping, validated
from hippo_core.protocols.base.experiment import Experiment, experiment_of, experiments, load_experiment
from hippo_core.protocols.base.parameters import RECORD_FIELDS, Positive

PLURALS = {"models": "model", "seeds": "seed"}  # of fields that every experiment has


class GridFile(BaseModel):
    """A file of params/grids. A block is an experiment and any of its parameters as an axis: `name: value`, or `name: [value, ...]`; every
    combination is a cell, and the cells that it needs are added. Without `experiment` it is of the one of ours that suits its preset.

    `timeout`: seconds that a step of a notebook may take; `memory`: GB that a kernel may take, half of the machine unless said.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    threads: Positive = 1
    batch_size: Positive = 32
    timeout: Positive = 7200
    memory: Annotated[float, Field(gt=0)] | None = None
    blocks: Annotated[list[dict[str, Any]], Field(min_length=1)]


Axes = dict[str, list[Any]]  # the values of each parameter


@dataclass(frozen=True)
class Grid:
    """An expanded grid: its cells, those first that others need."""

    name: str
    title: str
    run_id: str
    cells: tuple[Cell, ...]
    threads: int
    timeout: int
    memory: float | None


@dataclass(frozen=True)
class Selection:
    """Which cells of a grid are meant: those whose condition (preset, or experiment) matches one of the patterns of `only`, of these seeds
    and of these sizes (n), with what they need. Nothing named means all. `models` stand in place of the grid's."""

    only: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()

    def takes(self, values: Mapping[str, Any]) -> bool:
        """Whether a cell of these values is meant, as far as they tell; what a value leaves open is taken."""
        preset, seed, size = (values.get(name) for name in ("preset", "seed", "n"))
        return (
            (preset is None or self.matches(preset))
            and (seed is None or not self.seeds or seed in self.seeds)
            and (size is None or not self.sizes or size in self.sizes)
        )

    def matches(self, condition: str) -> bool:
        """Whether a condition is one of `only`."""
        return not self.only or any(fnmatch(condition, pattern) for pattern in self.only)

    def __str__(self) -> str:
        """The selection in words, for an error."""
        named = {"preset": self.only, "seed": self.seeds, "size": self.sizes}
        return " and ".join(f"{name} {' or '.join(map(str, wanted))}" for name, wanted in named.items() if wanted)


ALL = Selection()


def grid_names() -> list[str]:
    """The grids of params/grids."""
    return sorted(path.stem for path in (root() / "params" / "grids").glob("*.yaml"))


def load_grid(name: str) -> tuple[GridFile, list[tuple[str, Experiment | None, Axes]]]:
    """A grid file and its blocks, checked: which one it is, the experiment that it names, if any, and its axes. LabError for an unknown
    name or axis."""
    if name not in grid_names():
        raise unknown("grid", name, grid_names())
    where = f"params/grids/{name}.yaml"
    file = validated(GridFile, read_mapping(root() / where), where)
    return file, [_block(block, f"{where}, block {number + 1}") for number, block in enumerate(file.blocks)]


def _block(block: Mapping[str, Any], where: str) -> tuple[str, Experiment | None, Axes]:
    """The axes of a block in the order of the experiment's parameters; those that it leaves out have the experiment's usual values."""
    named = block.get("experiment")
    if named is not None and not isinstance(named, str):
        raise LabError(f"{where}: experiment: expected a name or a module path, got {named!r}")
    experiment = load_experiment(named) if named else None
    possible = [experiment] if experiment else experiments()
    fields = {name: info for one in possible for name, info in one.parameters.model_fields.items() if name not in RECORD_FIELDS}
    others = PLURALS | {other: name for one in possible for other, name in one.axes.items()}
    axes: dict[str, list[Any]] = {name: list(values) for one in possible for name, values in one.axis_defaults.items()}
    given = [others.get(key, key) for key in block if key != "experiment"]
    for key, name in zip((key for key in block if key != "experiment"), given, strict=True):
        if name not in fields and name not in others.values():
            raise LabError(f"{where}: unknown axis {key!r}; legal: {', '.join([*fields, *(other for other in others)])}, experiment")
        if given.count(name) > 1:
            raise LabError(f"{where}: {name} is an axis twice, under two names")
        of_lists = name in fields and get_origin(fields[name].annotation) is list
        axes[name] = _values(block[key], of_lists, f"{where}: {key}")
    if not experiment and "preset" not in axes:
        raise LabError(f"{where}: it names no experiment and no presets, so that nobody knows what it asks; give one of them")
    order = [*fields, *others.values()]
    return where, experiment, dict(sorted(axes.items(), key=lambda axis: order.index(axis[0])))


def _values(value: Any, of_lists: bool, where: str) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise LabError(f"{where}: expected at least one value")
    if of_lists and (wrong := [item for item in values if not isinstance(item, list)]):
        raise LabError(f"{where}: expected a list of lists, one list a variant, got {wrong[0]!r} among them")
    return values


def expand(name: str, run_id: str = "", selection: Selection = ALL, threads: int | None = None) -> Grid:
    """The cells of a grid that are selected. `threads` replaces those that the file gives each cell."""
    (file, blocks), run = load_grid(name), run_id or name
    each = threads or file.threads
    cells_by_id: dict[str, Cell] = {}
    for where, named, axes in blocks:
        axes = axes | ({"model": list(selection.models)} if selection.models else {})
        for combination in product(*axes.values()):
            values = dict(zip(axes, combination, strict=True))
            if not selection.takes(values):
                continue
            experiment = named or experiment_of(values)
            shared = {"run_id": run, "threads": each, "batch_size": file.batch_size}
            known = {key: value for key, value in shared.items() if key in experiment.parameters.model_fields}
            for parameters in experiment.variants(experiment, {**known, **values}, where):
                plan = experiment.plan(parameters)
                if selection.matches(plan.condition) and selection.takes(parameters.model_dump(include={"seed", "n"})):
                    for cell in cells_of(plan):
                        other = cells_by_id.setdefault(cell.id, cell)
                        if other.parameters != cell.parameters:
                            both = f"'{other.label}' and '{cell.label}' would both write {cell.record}"
                            raise LabError(f"{both}; leave one of them out of the grid")
    if not cells_by_id:
        raise LabError(f"grid {name} has no cell left" + (f" of {selection}" if str(selection) else ""))
    cells = in_order(sorted(cells_by_id.values(), key=lambda cell: bool(cell.experiment)))  # data sets, then as the file orders its blocks
    return Grid(name, file.title, run, tuple(cells), each, file.timeout, file.memory)


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """The cells as they are, but each behind those that it needs."""
    by_id, placed = {cell.id: cell for cell in cells}, dict[str, Cell]()

    def append_with_needs(cell: Cell) -> None:
        if cell.id not in placed:
            for need in cell.needs.values():
                if need in by_id:
                    append_with_needs(by_id[need])
            placed[cell.id] = cell

    for cell in cells:
        append_with_needs(cell)
    return list(placed.values())

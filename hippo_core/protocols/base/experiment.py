"""An experiment's descriptor: its notebook, its parameters, the cells that they stand for, the tables that these write, and how a result
is said and drawn."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.discovery import members
from hippo_core.errors import LabError, unknown
from hippo_core.models import checksums
from hippo_core.models.spec import load_spec, validated
from hippo_core.plugins import imported, is_path
from hippo_core.protocols.base.cell import RunningCell
from hippo_core.protocols.base.parameters import Parameters, require_run_id
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.protocols.base.qa.kv_size import KVSize
    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report import Pages
    from hippo_core.results.report.sections import Section

NOT_COMPARED = ("run_id", "record_dir", "threads", "dry_run", "cell", "record")  # columns that tell no cells apart that matter
PROTOCOLS = "hippo_core.protocols"  # each experiment of ours is an `Experiment` in a folder of it


def checked(experiment: "Experiment", values: dict[str, Any], where: str) -> Any:
    """The parameters, if every name and type and the model are right; LabError with what is legal otherwise."""
    parameters: Any = validated(experiment.parameters, values, where)
    require_run_id(parameters)
    load_spec(parameters.model)
    return parameters


def planned(experiment: "Experiment", parameters: Any, needs: Mapping[str, CellPlan] | None = None) -> CellPlan:
    """The cell of these parameters: its rows depend on them, on the experiment's modules, on the model, and on the cells in `needs`."""
    usual = experiment.parameters().values()
    step, own = experiment.step_of(parameters), parameters.values()
    changed = {name: value for name, value in own.items() if name not in Parameters.model_fields and name != "step"}
    label_parts = [f"{name}={value}" for name, value in changed.items()]
    label_parts += [name_value for name in ("model", "seed") if (name_value := str(own[name])) and own[name] != usual[name]]
    spec, short = load_spec(parameters.model), experiment.short_name
    return CellPlan(
        experiment=experiment.name,
        notebook=experiment.notebook,
        parameters=parameters.model_dump(),
        kind=f"{short}-{step}",
        folder=(short, step, f"{parameters.model.replace('/', '-')}_{parameters.seed}"),
        label=" ".join([short, *([step] if len(experiment.tables) > 1 else []), *label_parts]),
        condition=short,
        step=step,
        needs=dict(needs or {}),
        modules=(experiment.run,),
        inputs={"weights": checksums.weights(spec.name), "settings": spec.model_dump(mode="json")},
        models=(spec.name,),
        config={"model": spec.model_dump(mode="json")},
    )


def each_once(experiment: "Experiment", values: dict[str, Any], where: str) -> Iterable[Any]:
    """The parameters of the one cell that these values of a grid's axes stand for."""
    yield experiment.check(values, where)


def plain_sections(tables: "Sequence[TableRows]") -> "list[Section]":
    """A section a step: the means of its measures by the parameters in which its cells differ, else by the unit of its rows."""
    from hippo_core.results.report.sections import Section, measures

    sections = []
    for table in tables:
        rows: Frame = table.rows
        parameters = [name for name in rows if name not in (*table.measures, table.unit, table.cluster, *NOT_COMPARED)]
        differing = [name for name in parameters if rows[name].nunique() > 1 and rows.groupby("record")[name].nunique().max() == 1]
        by = differing or [table.unit]
        title = f"{table.experiment.rpartition(':')[2].lower()}, {table.step}"
        sentence = f"Means of {', '.join(table.measures)} by {', '.join(by)}, with 95% intervals by {table.cluster}."
        sections.append(Section(title, sentence, table=measures(rows, table.cluster, table.measures, by)))
    return sections


def questions(parameters: Any) -> float:
    """How many questions a cell asks, where it asks any: its work, as far as one experiment knows of another's."""
    return float(max(1, getattr(parameters, "items", getattr(parameters, "n", 1))))


def no_sentence(cell: Any, metrics: Mapping[str, Any]) -> str:
    """The means of the measures, in a line."""
    means = metrics.get("metrics", {})
    texts = [f"{name} {value['mean']:.4g}" for name, value in means.items() if isinstance(value, dict) and value.get("mean") is not None]
    return ", ".join(texts) or "nothing was measured"


@dataclass(frozen=True)
class Experiment:
    """One protocol, which owns what a row of it is about."""

    name: str  # what a person calls it; of one's own, its module path (`package.module:NAME`)
    notebook: str  # the stem of a file in `notebooks/`, or the path of one from the lab's root
    parameters: type[Parameters]  # the form of the notebook's parameters cell
    run: str  # the module that makes the rows; what it imports decides when a record is out of date
    tables: tuple[Table, ...]  # what each step writes, in the order of the steps
    cell: type[RunningCell] = RunningCell  # what its notebook gets from `begin`
    # the values with those that a person may leave out, and a line that says what was chosen for them
    fill_defaults: Callable[[dict[str, Any]], tuple[dict[str, Any], str]] = lambda values: (values, "")
    checks: "Callable[[Experiment, dict[str, Any], str], Any]" = checked  # the parameters that values stand for, or LabError
    plans: "Callable[[Experiment, Any], CellPlan]" = planned  # the cell with these parameters, with all that it needs
    # the parameters that the values of a grid's axes stand for: several, one or none
    variants: "Callable[[Experiment, dict[str, Any], str], Iterable[Any]]" = each_once
    label_fields: tuple[str, ...] = ("seed", "step")  # that the command of a cell names even where they have their default value
    axes: Mapping[str, str] = field(default_factory=dict)  # other names of fields in a grid (`sizes` for `n`), and what `variants` reads
    axis_defaults: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # of axes that a block leaves out, where not the field's
    matches: Callable[[Mapping[str, Any]], bool] = lambda values: False  # whether a grid's values are of it where a block names none
    sentence: Callable[[Any, Mapping[str, Any]], str] = no_sentence  # a result in words, from the parameters and the metrics
    figure: Callable[[Any, "pd.DataFrame"], bytes] | None = None  # a result as a PNG, from the parameters and the rows; None for none
    # pictures that a record must hold, by their paths in it; what draws them does not decide when a record is out of date
    files: "Callable[[Any, Path, pd.DataFrame], Mapping[str, bytes]]" = lambda parameters, record, rows: {}
    sections: "Callable[[Sequence[TableRows]], Sequence[Section]]" = plain_sections  # what a report says of its tables
    work: Callable[[Any], float] = questions  # how much a cell has to do, beside others of this experiment: what its time grows with
    kv_size: "Callable[[Any], KVSize | None]" = lambda parameters: None  # what keys and values of passages take; None where none are kept
    pages: "tuple[Pages, ...]" = ()  # write pages of their own into a report, in the place of sections; experiments may share them
    forget: Callable[[], None] = lambda: None  # lets go of what was read from disk

    @property
    def phase(self) -> str:
        """The stem of its notebook's file."""
        return Path(self.notebook).stem

    @property
    def short_name(self) -> str:
        """Its name without the path of its module, in lower case."""
        return self.name.rpartition(":")[2].lower()

    def check(self, values: dict[str, Any], where: str) -> Any:
        """The parameters that values stand for; LabError with what is legal otherwise. Loads no torch."""
        return self.checks(self, values, where)

    def plan(self, parameters: Any) -> CellPlan:
        """The cell with these parameters, and what it needs."""
        return self.plans(self, parameters)

    def step_of(self, parameters: Any) -> str:
        """The step of a cell with these parameters."""
        return getattr(parameters, "step", self.tables[0].step)

    def table(self, step: str) -> Table:
        """What a step writes."""
        return next(table for table in self.tables if table.step == step)

    def require(self) -> None:
        """LabError where its parts do not fit together."""
        where = f"experiment {self.name}"
        if not self.tables:
            raise LabError(f"{where} has no table; say what its rows are: tables=(Table(columns=..., unit=..., cluster=...),)")
        for role, names in (("step", [table.step for table in self.tables]), ("file", [table.file for table in self.tables])):
            if twice := [name for name, count in Counter(names).items() if count > 1]:
                raise LabError(f"{where}: two tables have the {role} {twice[0]!r}; each needs its own")
        if len(self.tables) > 1 and "step" not in self.parameters.model_fields:
            raise LabError(f"{where} has {len(self.tables)} steps and no parameter `step` that says which a cell is")
        for table in self.tables:
            table.require(where)


def names_of_ours() -> tuple[str, ...]:
    """The names of the lab's own experiments, read from the source of the protocols."""
    return tuple(members(PROTOCOLS, "Experiment"))


@cache
def load_experiment(name: str) -> Experiment:
    """The experiment of this name or module path; LabError with what is legal otherwise, and where its parts do not fit together."""
    ours = members(PROTOCOLS, "Experiment")
    if name not in ours and not is_path(name):
        raise unknown("experiment", name, [*ours, "package.module:NAME"])
    experiment = imported(ours[name].path if name in ours else name, f"experiment {name}")
    if not isinstance(experiment, Experiment):
        raise LabError(f"experiment {name} is no hippo_core.extend.Experiment")
    experiment.require()
    return experiment


def experiment_of(values: Mapping[str, Any]) -> Experiment:
    """The experiment of ours that a grid's values belong to, where their block names none."""
    return next(experiment for experiment in experiments() if experiment.matches(values))


def experiments() -> list[Experiment]:
    """All of ours."""
    return [load_experiment(name) for name in names_of_ours()]

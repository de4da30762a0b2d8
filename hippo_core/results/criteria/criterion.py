"""The form of params/criteria: what a success criterion compares, on which items, and which target it must reach."""

import math
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.models.spec import read_mapping
from hippo_core.results.conditions import condition_name

Regime = Literal["immediate", "delayed", "after_sleep"]
Encoder = Literal["own", "minilm"]
About = Literal["claim", "control", "instrument"]
LEGAL = {  # targets, by what a criterion looks at
    "difference": {"at_least", "not_below", "within", "same"},
    "ratio": {"at_most"},
    "value": {"at_least", "at_most", "at_most_chance_plus", "within"},
}
RULES = sorted(set().union(*LEGAL.values()))
Range = tuple[float, float]
Values = dict[str, str | int | float | bool]  # of columns


class Form(BaseModel):
    """A part of the file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Condition(Form):
    """Whose rows: a preset (or a group such as best_rag) at a stage; a bare name is a preset. `overrides` are those of the preset, joined
    by ";"; without an `encoder` the model's own vectors are meant. `regime`, `metric`: where they are not the criterion's."""

    preset: str
    stage: str = "test"
    step: str = "test"
    regime: Regime | None = None
    encoder: Encoder | None = None
    overrides: str = ""
    metric: str = ""

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"preset": value} if isinstance(value, str) else value

    def __str__(self) -> str:
        encoder = self.encoder if self.encoder and self.encoder != "own" else ""
        stage, regime = "" if self.stage == "test" else f" at {self.stage}", f", {self.regime}" if self.regime else ""
        metric = f", {self.metric}" if self.metric else ""
        return condition_name(self.preset, encoder, self.overrides) + stage + regime + metric


Side = TypeVar("Side", Condition, Values)


class Pair(Form, Generic[Side]):
    """Two sides and the column that is compared."""

    a: Side
    b: Side
    metric: str = "score"


class Value(Form, Generic[Side]):
    """One side and the column whose mean is judged."""

    of: Side
    metric: str = "score"


class Where(Form):
    """The items that a criterion is about; empty means all."""

    rung: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    hops: tuple[int, ...] = ()


class Rule(Form, Generic[Side]):
    """What every criterion says: what it is about (a claim about a memory, a control of it, or the instrument), what it measures (exactly
    one of difference, ratio, value), and one target. A claim against a rival that answers hardly more than a guess is not judged.

    | target | met when |
    |---|---|
    | difference at_least x | value >= x, the interval's lower bound > 0, p_holm <= .05 |
    | difference not_below x | value >= x, lower bound > -margin ("at least equal": x = -margin) |
    | difference same true | the column is the same of both conditions for each item; numbers may differ by `tolerance` |
    | ratio at_most x < 1 | value <= x, upper bound < 1, p_holm <= .05 |
    | ratio at_most x >= 1 | value <= x, upper bound <= x + margin |
    | value at_least x / at_most x | value reaches x, the bound on that side comes within the margin of it |
    | value at_most_chance_plus x | as at_most, of the metric minus the item's chance |
    | within [x, y] | x <= value <= y, and the interval lies inside [x - margin, y + margin] |
    """

    id: str
    question: str
    text: str
    family: str
    about: About
    difference: Pair[Side] | None = None
    ratio: Pair[Side] | None = None
    value: Value[Side] | None = None
    at_least: float | None = None
    not_below: float | None = None
    at_most: float | None = None
    at_most_chance_plus: float | None = None
    within: Range | None = None
    same: Literal[True] | None = None
    tolerance: Annotated[float, Field(ge=0)] = 0.0
    margin: float | None = None

    @model_validator(mode="after")
    def _one_kind_one_target(self) -> "Rule":
        kinds = [name for name in LEGAL if getattr(self, name) is not None]
        rules = [name for name in RULES if getattr(self, name) is not None]
        if len(kinds) != 1 or len(rules) != 1 or rules[0] not in LEGAL[kinds[0]]:
            raise ValueError(f"criterion {self.id!r} needs one of {LEGAL} with one of its targets, got {kinds} with {rules}")
        return self

    @property
    def rule(self) -> str:
        """The name of its target."""
        return next(name for name in RULES if getattr(self, name) is not None)

    @property
    def target(self) -> float | Range:
        """What the value must reach; of `same` the value is the share of items."""
        return 1.0 if self.same else getattr(self, self.rule)

    @property
    def reach(self) -> Range:
        """The least and the most that reaches the target."""
        target = self.target
        if isinstance(target, tuple):
            return target
        return (target, math.inf) if self.rule in ("at_least", "not_below", "same") else (-math.inf, target)

    def support(self, margin: float) -> Range:
        """What the lower bound of the interval must be above, and the upper bound below; `margin`: where the criterion has none."""
        margin = margin if self.margin is None else self.margin
        if self.same:
            return -math.inf, math.inf
        if self.difference and not self.within:
            return (0.0 if self.superiority else -margin), math.inf
        return self.reach[0] - margin, 1.0 if self.superiority else self.reach[1] + margin

    @property
    def metric(self) -> str:
        """The column it is about."""
        return (self.difference or self.ratio or self.value).metric  # type: ignore[union-attr]

    @property
    def scored(self) -> bool:
        """Whether it is about answers that are right: the score, or that under a policy of abstention (score_calibrated)."""
        return self.metric == "score" or self.metric.startswith("score_")

    @property
    def conditions(self) -> tuple[Side, ...]:
        """The conditions it needs rows of."""
        pair = self.difference or self.ratio
        return (pair.a, pair.b) if pair else (self.value.of,)  # type: ignore[union-attr]

    @property
    def superiority(self) -> bool:
        """Whether it claims that one condition beats the other; such claims share a family's error rate."""
        if self.difference:
            return self.at_least is not None
        return self.ratio is not None and self.at_most is not None and self.at_most < 1


class Criterion(Rule[Condition]):
    """A criterion of answers to questions: whose answers, to which questions."""

    suites: tuple[str, ...] = Field(min_length=1)
    profiles: tuple[str, ...] = Field(("default",), min_length=1)
    worlds: tuple[str, ...] = ("",)  # settings of the suite that are overridden, joined by ";": worlds of another size, say
    regime: Regime = "delayed"
    where: Where = Where()
    min_items: int = 0
    min_worlds: int = 0
    needs: str = ""

    @property
    def about_rows(self) -> dict[str, str]:
        """The rows that a single one (`Criteria.single`) is about, as a verdict names them."""
        rung = self.where.rung[0] if len(self.where.rung) == 1 else ""
        cell = {"suite": self.suites[0], "profile": self.profiles[0], "worlds": self.worlds[0]}
        return {**cell, "regime": self.regime, "rung": rung}


class TableCriterion(Rule[Values]):
    """A criterion of the table of an experiment's step: a side is the rows where these columns have these values. Pairs are rows of one
    unit, intervals go by its clusters."""

    experiment: str
    step: str = ""  # the first of the experiment unless said
    family: str = ""

    @property
    def about_rows(self) -> dict[str, str]:
        """The rows that it is about, as a verdict names them."""
        return {"suite": self.experiment, "profile": "default", "regime": ""}


Asked = Criterion | TableCriterion


class Criteria(Form):
    """The whole file. `groups`: names of conditions of which the best counts, or of such groups."""

    margin: float = 0.05
    alpha: float = 0.05
    rung_items: int = 200
    rung_worlds: int = 20
    groups: dict[str, tuple[Condition, ...]]
    criteria: tuple[Criterion, ...]
    tables: tuple[TableCriterion, ...] = ()

    @model_validator(mode="after")
    def _ids_differ(self) -> "Criteria":
        twice = [name for name, count in Counter(criterion.id for criterion in (*self.criteria, *self.tables)).items() if count > 1]
        if twice:
            raise ValueError(f"two criteria have the id {twice[0]!r}")
        return self

    @model_validator(mode="after")
    def _refuse_circular_groups(self) -> "Criteria":
        for name in self.groups:
            try:
                self.members(Condition(preset=name))
            except RecursionError:
                raise ValueError(f"the group {name!r} holds itself") from None
        return self

    def members(self, condition: Condition) -> list[Condition]:
        """The conditions to choose the best from: those of its group and of the groups in it, with its overrides; else itself."""
        if condition.preset not in self.groups:
            return [condition]
        shared = {"stage": condition.stage, "step": condition.step, "regime": condition.regime} | (
            {"overrides": condition.overrides} if condition.overrides else {}
        )
        return [single for member in self.groups[condition.preset] for single in self.members(member.model_copy(update=shared))]

    def single(self) -> list[Criterion]:
        """The criteria, one a suite, profile and kind of worlds; of several, each is added to the id."""
        singles = []
        for criterion in self.criteria:
            lists = (criterion.suites, criterion.profiles, criterion.worlds)
            for suite, profile, worlds in product(*lists):
                several = [value for value, all_of in zip((suite, profile, worlds), lists, strict=True) if value and len(all_of) > 1]
                update = {"id": "/".join([criterion.id, *several]), "suites": (suite,), "profiles": (profile,), "worlds": (worlds,)}
                singles.append(criterion.model_copy(update=update))
        return singles


def load_criteria(folder: Path | None = None) -> Criteria:
    """All criteria of a folder (default: params/criteria): `shared.yaml` has margins and groups, every other file criteria, and perhaps
    groups. A criterion that names an `experiment` is one of that experiment's table."""
    folder = folder or root() / "params" / "criteria"
    files = sorted(path for path in folder.glob("*.yaml") if path.name != "shared.yaml")
    merged: dict[str, Any] = {"criteria": [], **read_mapping(folder / "shared.yaml")}
    for path in files:
        part = read_mapping(path)
        if wrong := sorted(part.keys() - {"about", "criteria", "groups"}):
            raise LabError(f"{path}: unknown key {wrong[0]!r}; legal: about, criteria, groups (margins stand in shared.yaml)")
        if about := part.pop("about", None):
            part["criteria"] = [{"about": about, **entry} if isinstance(entry, dict) else entry for entry in part.get("criteria", [])]
        groups = {**merged["groups"], **part.get("groups", {})}
        _checked(path, {**merged, **part, "groups": groups})
        merged |= {"criteria": [*merged["criteria"], *part.get("criteria", [])], "groups": groups}
    return _checked(folder, merged)


def _checked(path: Path, values: dict[str, Any]) -> Criteria:
    listed = values.get("criteria", ())
    if isinstance(listed, list):
        of_tables = [entry for entry in listed if isinstance(entry, dict) and "experiment" in entry]
        values = {**values, "criteria": [entry for entry in listed if entry not in of_tables], "tables": of_tables}
    try:
        return Criteria.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise LabError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None

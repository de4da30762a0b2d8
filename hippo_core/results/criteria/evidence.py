"""The rows that speak for a criterion: of its conditions, or of the best preset of a group, of comparable cells, with keys that are unique
over seeds; and what they measure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from hippo_core.results.conditions import ignores_window
from hippo_core.results.criteria.criterion import Asked, Condition, Criteria, Criterion, Where
from hippo_core.results.formatting import share
from hippo_core.results.frames import Frame
from hippo_core.results.policies import SCORES
from hippo_core.results.statistics.interval import LEAST_WORLDS, Interval, cluster_interval, ratio_interval
from hippo_core.results.statistics.paired import Comparison, compare, paired
from hippo_core.results.summaries import OWN_VECTORS, allowed_rivals

VALIDATION_WORLDS = 16  # by which a rival may be chosen; with fewer it is the highest on test worlds, which is harder to beat
LEAST_ABOVE_CHANCE = 0.05  # of a rival's score: a claim to be better than one that answers less is not judged


class NotJudged(Exception):
    """Why the rows at hand cannot speak for a criterion."""


class NotAsked(NotJudged):
    """A criterion is about presets, worlds or settings that a run does not hold at all."""


class Pool:
    """The rows of one model, looked up by condition. Rows may lack `encoder`, `preset_overrides` and `suite_overrides`."""

    def __init__(self, rows: Frame) -> None:
        named = [rows[name] for name in ("suite", "profile", "regime", "preset", "stage", "step")]
        nothing = pd.Series("", index=rows.index)
        texts = [rows.get(name, nothing).fillna("").astype(str) for name in ("suite_overrides", "preset_overrides", "encoder")]
        texts[-1] = texts[-1].replace("own", "")
        self.rows = rows
        self._row_numbers = rows.groupby([*named, *texts], sort=False).indices
        self._frames: dict[tuple, Frame] = {}

    def of(self, criterion: Criterion, condition: Condition) -> Frame:
        """A condition's rows. A preset that ignores the window has the same prompts in both regimes and may have run as delayed only."""
        regime = condition.regime or criterion.regime
        here = self._in_regime(criterion, condition, regime)
        if not len(here) and regime == "immediate" and ignores_window(condition.preset):
            here = self._in_regime(criterion, condition, "delayed")
        return here

    def _in_regime(self, criterion: Criterion, condition: Condition, regime: str) -> Frame:
        fields = (criterion.suites[0], criterion.profiles[0], regime, condition.preset, condition.stage, condition.step)
        key = (*fields, criterion.worlds[0], condition.overrides, (condition.encoder or "own").replace("own", ""))
        if key not in self._row_numbers and not condition.encoder and not condition.preset.startswith("baselines/"):
            key = (*key[:-1], "minilm")  # a memory's encoder is what it was run with; a rag's is the rag
        if (key, criterion.where) not in self._frames:
            mine = self.rows.iloc[self._row_numbers.get(key, [])]
            for column, wanted in criterion.where.model_dump().items():
                mine = mine.loc[mine[column].isin(wanted)] if wanted else mine
            self._frames[key, criterion.where] = mine
        return self._frames[key, criterion.where]


class Pick(NamedTuple):
    """The one of several conditions that is chosen for a side, its rows, how it was chosen, and among how many it was the highest on the
    very rows that are judged. `shows`: the share of the gold facts that it shows on validation worlds; NaN where nothing says so."""

    rows: pd.DataFrame
    condition: Condition
    choice: str
    among: int
    shows: float = math.nan


def because(criterion: Criterion, reason: str) -> str:
    """The reason with what the criterion needs, where it says so."""
    return f"{reason}; needs {criterion.needs}" if criterion.needs else reason


def options_of(criteria: Criteria, criterion: Criterion, condition: Condition, pool: Pool) -> list[Condition]:
    """The conditions that may be chosen: this one, or the members of its group, where they have rows. NotAsked where none has."""
    members = [member for member in criteria.members(condition) if len(pool.of(criterion, member))]
    if not members:
        raise NotAsked(because(criterion, f"no rows of {condition}"))
    return allowed_rivals(members, [member.encoder for member in members])


def pick(criterion: Criterion, condition: Condition, options: Sequence[Condition], pool: Pool, validation: Pool) -> Pick:
    """The best of the options, of equals the first: of rags by validation worlds, else by the mean on the rows, of the score for costs."""
    tables = [pool.of(criterion, option) for option in options]
    best = _by_validation(criterion, options, validation) if condition.preset.startswith("best_rag") else None
    if best is None:
        best = _highest(tables, "score" if criterion.ratio else criterion.metric)  # never the dearest
        return Pick(tables[best], options[best], f"the highest of {len(options)} on test worlds", len(options))
    tuned = validation.of(criterion, options[best])
    most = tuned["n_shown"].max() if "n_shown" in tuned else math.nan
    column = "" if math.isnan(most) else f"recall_{most:.0f}"
    shows = float(tuned[column].mean()) if column in tuned else math.nan
    return Pick(tables[best], options[best], "chosen on validation worlds", 1, shows)


def _by_validation(criterion: Criterion, options: Sequence[Condition], validation: Pool) -> int | None:
    """The option with the highest score on all validation worlds of the suite; None where one of them has too few worlds."""
    unfiltered = criterion.model_copy(update={"where": Where()})
    tables = [validation.of(unfiltered, option) for option in options]
    metric = criterion.metric if criterion.metric in SCORES else "score"
    worlds = [len(table[["seed", "world"]].drop_duplicates()) for table in tables]
    return _highest(tables, metric) if all(count >= VALIDATION_WORLDS for count in worlds) else None


def _highest(tables: Sequence[pd.DataFrame], metric: str) -> int:
    values = [table[metric].to_numpy(dtype=float) for table in tables]
    known = [column[~np.isnan(column)] for column in values]
    means = [float(column.mean()) if len(column) else -math.inf for column in known]
    return max(range(len(means)), key=means.__getitem__)


@dataclass(frozen=True)
class Evidence:
    """What was measured for a criterion: value with interval, the comparison where there is one, the cells (those of a first), and
    remarks for the reason. `a`, `b`: the conditions compared. `rival_shows`: the share of the gold facts that the best rag as b
    shows on validation worlds. `says_nothing`: why a claim is not judged by it."""

    interval: Interval
    comparison: Comparison | None = None
    cells: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    rival_shows: float = math.nan
    a: str = ""
    b: str = ""
    says_nothing: str = ""


def gather(criteria: Criteria, criterion: Criterion, pool: Pool, validation: Pool) -> Evidence:
    """Measure a criterion on the rows of one model. Raises NotJudged where rows, columns or worlds are missing."""
    options = [options_of(criteria, criterion, condition, pool) for condition in criterion.conditions]
    if criterion.metric not in pool.rows:
        raise NotJudged(because(criterion, f"no measurement of {criterion.metric} in this run"))
    tables, names, remarks, confidence, rival_shows = [], [], [], 0.95, math.nan
    for condition, candidates in zip(criterion.conditions, options, strict=True):
        picked = pick(criterion, condition, candidates, pool, validation)
        tables.append(_with_own_metric(criterion, condition, picked.rows))
        names.append(str(picked.condition))
        rival_shows = picked.shows  # of the last condition: b of a difference
        if condition.preset in criteria.groups:
            remarks.append(f"{condition.preset} is {picked.condition}, {picked.choice}")
            remarks += [OWN_VECTORS] if any(option.encoder == "own" for option in candidates) else []
        if picked.among > 1 and not _conservative(criterion, condition):
            confidence = 1 - 0.05 / picked.among
            remarks.append(f"interval at {confidence:.1%}, for the best of {picked.among} is claimed")
    tables = common(tables)
    if criterion.metric in SCORES:
        remarks += [_policy(criterion, name, table) for name, table in zip(names, tables, strict=True)]
    known = tables[0]["world"][tables[0][criterion.metric].notna()]
    check_size(criteria, criterion, len(known), len(set(known)))
    evidence = measured(criterion, tables, names, confidence)
    return replace(evidence, remarks=tuple(remarks), rival_shows=rival_shows if criterion.difference else math.nan)


def _with_own_metric(criterion: Criterion, condition: Condition, rows: Frame) -> Frame:
    """A condition's rows, with its own column in the place of the one that is compared."""
    if not condition.metric:
        return rows
    if condition.metric not in rows:
        raise NotJudged(because(criterion, f"no measurement of {condition.metric} in this run"))
    return rows.assign(**{criterion.metric: rows[condition.metric]})


def _at_chance(criterion: Asked, rival: Frame, name: str) -> str:
    """That the rival of a claim answers hardly more than a guess; empty where it answers more. The answers decide, also where a claim is
    about costs or ranks; without a column `chance` a guess is never right."""
    column = criterion.metric if criterion.scored else "score"
    if criterion.about != "claim" or column not in rival:
        return ""
    scored = rival[rival[column].notna()]
    mean, chance = float(scored[column].mean()), float(scored["chance"].mean()) if "chance" in scored else 0.0
    return f"the rival {name} is at chance ({share(mean)}; a guess: {share(chance)})" if mean <= chance + LEAST_ABOVE_CHANCE + 1e-9 else ""


def _policy(criterion: Criterion, name: str, table: pd.DataFrame) -> str:
    """When a condition says "unknown", in words. Raises NotJudged where no row of it has a score under the policy."""
    thresholds = "; ".join(sorted(set(table["calibrated_on"])))
    if not len(table[criterion.metric].dropna()):
        raise NotJudged(because(criterion, f"no {criterion.metric} of {name}: {thresholds}"))
    return f"{name}: {thresholds if criterion.metric == 'score_calibrated' else criterion.metric}"


def _conservative(criterion: Criterion, condition: Condition) -> bool:
    """Whether taking the highest mean makes the criterion harder to meet: b of a difference, or a value at most x."""
    if criterion.value:
        return criterion.rule in ("at_most", "at_most_chance_plus")
    return criterion.difference is not None and condition is criterion.conditions[1] and criterion.rule != "within"


def common(tables: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The tables cut to the cells that all have, per seed the largest n (which has the smaller ones' worlds); ids unique over seeds."""
    sizes = [set(zip(table["seed"], table["n"], strict=True)) for table in tables]
    largest: dict[object, int] = {}
    for seed, n in sorted(set.intersection(*sizes)):
        largest[seed] = n
    if not largest:
        raise NotJudged("the two sides share no cell of one size and seed")
    cut = []
    for table in tables:
        table = table.loc[[largest.get(seed) == n for seed, n in zip(table["seed"], table["n"], strict=True)]]
        seed = table["seed"].astype(str) + "/"
        table = table.assign(item_id=seed + table["item_id"].astype(str), world=seed + table["world"].astype(str))
        if table.duplicated("item_id").any():
            raise NotJudged(f"several cells hold the same items: {', '.join(sorted(map(str, table['cell'].unique())))}")
        cut.append(table)
    return cut


def check_size(criteria: Criteria, criterion: Criterion, n: int, n_worlds: int, least: int = LEAST_WORLDS) -> None:
    """Raise NotJudged where a claim rests on too few scored items or worlds: of any `least` worlds, of a rung the items and worlds of
    params/criteria/shared.yaml."""
    by_rung = bool(criterion.where.rung)
    items = max(criterion.min_items, criteria.rung_items if by_rung else 0)
    worlds = max(criterion.min_worlds, criteria.rung_worlds if by_rung else 0, least)
    if n < items or n_worlds < worlds:
        raise NotJudged(f"{n} items in {n_worlds} worlds are too few: at least {items} items and {worlds} worlds")


def measured(
    criterion: Asked,
    tables: Sequence[pd.DataFrame],
    names: Sequence[str],
    confidence: float = 0.95,
    key: str = "item_id",
    cluster: str = "world",
) -> Evidence:
    """What a criterion measures, on the rows of its conditions of these names. `key`, `cluster`: the columns by which rows pair and by
    which intervals are made."""
    cells = tuple(dict.fromkeys(str(cell) for table in tables for cell in sorted(table["cell"].unique())))
    a, b = [*names, ""][:2]
    if criterion.value:
        values = tables[0][criterion.metric].to_numpy(dtype=float)
        if criterion.rule == "at_most_chance_plus" and "chance" not in tables[0]:
            raise NotJudged("no measurement of chance in this run")
        inside = bool(np.all(np.isnan(values) | ((values >= 0) & (values <= 1))))  # else the column has no bounds
        chance = tables[0]["chance"].to_numpy(dtype=float) if criterion.rule == "at_most_chance_plus" else None
        interval = cluster_interval(values, tables[0][cluster], confidence, bounds=(0.0, 1.0) if inside else None, chance=chance)
        return Evidence(interval, cells=cells, a=a)
    pairs = paired(*tables, metric=criterion.metric, key=key, cluster=cluster)
    says_nothing = _at_chance(criterion, tables[1], b)
    if criterion.same:
        same = (pairs["a"] - pairs["b"]).abs() <= criterion.tolerance if criterion.tolerance else pairs["a"] == pairs["b"]
        interval = cluster_interval(same.to_numpy(dtype=float), pairs["cluster"], confidence, bounds=(0.0, 1.0))
        return Evidence(interval, cells=cells, a=a, b=b, says_nothing=says_nothing)
    comparison = compare(*tables, metric=criterion.metric, key=key, cluster=cluster, confidence=confidence)
    interval = Interval(comparison.difference, comparison.low, comparison.high, comparison.n, comparison.n_worlds)
    if criterion.ratio:
        interval = ratio_interval(pairs["a"], pairs["b"], pairs["cluster"], confidence)
    return Evidence(interval, comparison, cells, a=a, b=b, says_nothing=says_nothing)

"""The rows of a condition that a criterion compares: those of its preset, or of the best preset of its group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hippo_core.results.conditions import ignores_window
from hippo_core.results.criteria.criterion import Condition, Criteria, Criterion, Where
from hippo_core.results.frames import Frame
from hippo_core.results.policies import SCORES
from hippo_core.results.summaries import OWN_VECTORS, allowed_rivals

VALIDATION_WORLDS = 16  # by which a rival may be chosen; with fewer it is the highest on test worlds, which is harder to beat


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


@dataclass(frozen=True)
class Pick:
    """The one of `options` that is chosen for a condition, its rows, and whether validation worlds chose it. `shows`: the share of
    the gold facts that it shows there; NaN where nothing says so."""

    rows: pd.DataFrame
    condition: Condition
    options: Sequence[Condition]
    by_validation: bool
    shows: float = math.nan

    @property
    def among(self) -> int:
        """Among how many it was the highest on the very rows that are judged."""
        return 1 if self.by_validation else len(self.options)

    def remarks(self, group: str) -> list[str]:
        """What a reader must know of the pick from a group."""
        choice = "chosen on validation worlds" if self.by_validation else f"the highest of {self.among} on test worlds"
        own = any(option.encoder == "own" for option in self.options)
        return [f"{group} is {self.condition}, {choice}", *([OWN_VECTORS] if own else [])]


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
    chosen = _by_validation(criterion, options, validation) if condition.preset.startswith("best_rag") else None
    best = _highest(tables, "score" if criterion.ratio else criterion.metric) if chosen is None else chosen  # never the dearest
    shows = math.nan
    if chosen is not None:
        tuned = validation.of(criterion, options[best])
        most = tuned["n_shown"].max() if "n_shown" in tuned else math.nan
        column = "" if math.isnan(most) else f"recall_{most:.0f}"
        shows = float(tuned[column].mean()) if column in tuned else math.nan
    return Pick(tables[best], options[best], options, chosen is not None, shows)


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

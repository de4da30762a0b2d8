"""A run as the report sees it: item rows with their condition and setting, the records behind them, and what failed.

A *setting* is what must be equal before conditions may be compared: suite, model, profile, suite overrides and size. Seeds are pooled.
Validation worlds of the same suite, model, profile and suite overrides belong to it, however many they are.
"""

import math
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.protocols.questions.report.contract import Violation, marked, violations
from hippo_core.results.conditions import condition_name, suite_position
from hippo_core.results.criteria.power import DECLARED, Claim, read_declared
from hippo_core.results.figures.palette import style_of
from hippo_core.results.frames import Frame
from hippo_core.results.policies import with_policies
from hippo_core.results.records import DONE, folders_with, read_meta, read_rows, records_with
from hippo_core.results.report.pages import Templates
from hippo_core.results.summaries import with_answered_by

LISTED = 6  # seeds of a setting whose items are listed: a page of more would be slow to open and longer than anyone reads
CELL = ["record", "condition", "setting", "regime", "split", "seed", "n", "model"]
TEMPLATES = Templates(Path(__file__).parent / "templates")
TAUGHT = "teach.csv"


@dataclass(frozen=True)
class RecordView:
    """One record: its path below the run, the condition and setting it belongs to, and its `meta.json`. A validation cell has the first
    setting that it is for, and without one no page of items; nor has a cell that is not `listed`, one of many seeds."""

    record: str
    condition: str
    setting: str
    regime: str
    split: str
    seed: int
    n: int
    model: str
    listed: bool
    meta: dict[str, Any]

    @property
    def id(self) -> str:
        """The id of its cell."""
        return Path(self.record).name

    @property
    def page(self) -> str:
        """The name of the page that lists its items."""
        return re.sub(r"[^A-Za-z0-9_.-]+", "-", self.record.replace("/", "--")) + ".html"


@dataclass(frozen=True)
class Run:
    """All that a report needs of a run. `rows` are of test worlds, and `validation` of the same settings on validation worlds, if any; a
    run of validation worlds alone (`split`) has these as its rows. `declared` are claims that were said before the run to rest on too few
    worlds, `invalid` the broken clauses of its contract (contract.py)."""

    folder: Path
    rows: Frame
    validation: Frame
    cells: tuple[RecordView, ...]
    unfinished: tuple[dict[str, str], ...]
    dry: bool
    declared: tuple[Claim, ...] = ()
    invalid: tuple[Violation, ...] = ()
    split: str = "test"

    @cached_property
    def numbers(self) -> Frame:
        """The rows without their long texts: all that tables, figures and verdicts need."""
        return self.rows.drop(columns=["prompt", "pred", "forced", "shown", "recalled_texts"], errors="ignore")

    @cached_property
    def models(self) -> list[str]:
        """The models, those with more rows first."""
        sizes = self.rows["model"].value_counts()
        return sorted(map(str, sizes.index), key=lambda model: (-sizes[model], model))

    @cached_property
    def settings(self) -> list[str]:
        """The settings in order: by model, by suite, then by name, where numbers count as such."""
        settings = self.rows[["model", "suite", "setting"]].drop_duplicates().itertuples(index=False)
        keys = [(self.models.index(model), suite_position(suite), natural(setting), setting) for model, suite, setting in settings]
        return [setting for *_, setting in sorted(keys)]

    def settings_of(self, model: str) -> dict[str, str]:
        """The settings of a model in order, each with its name without the model's."""
        mine = set(self.rows.loc[self.rows["model"] == model, "setting"])
        return {setting: setting.removeprefix(f"{model} · ") for setting in self.settings if setting in mine}

    def validation_of(self, setting: str) -> Frame:
        """The rows on validation worlds that belong to a setting."""
        return self.validation[self.validation["place"].isin(set(self.rows.loc[self.rows["setting"] == setting, "place"]))]

    def cells_of(self, setting: str) -> list[RecordView]:
        """The records of one setting."""
        return [cell for cell in self.cells if cell.setting == setting and cell.split == self.split]


def load_run(folder: Path) -> Run:
    """Read every finished record of a run's answers. Raises LabError where there are none."""
    try:
        rows, dry = read_rows(folder, split=None), False
    except LabError:
        rows, dry = read_rows(folder, split=None, dry_run=True), True
    rows = _named(folder, rows)
    invalid = () if dry else tuple(violations(rows))
    rows = marked(rows, invalid)
    cells = rows.drop_duplicates("record")[CELL]
    cells = cells.assign(listed=cells.groupby("setting")["seed"].rank("dense") <= LISTED)
    test, validation = rows[rows["split"] == "test"], rows[rows["split"] == "val"]
    test, validation = with_policies(test, validation), with_policies(validation, validation)
    asked, beside, split = (validation, test, "val") if test.empty else (test, validation, "test")
    records = tuple(RecordView(**cell, meta=read_meta(folder / cell["record"])) for cell in cells.to_dict("records"))
    declared = tuple(read_declared(folder / DECLARED))
    return Run(folder, asked, beside, records, tuple(_unfinished(folder)), dry, declared, invalid, split)


def broken_clauses(folder: Path) -> list[Violation]:
    """The clauses of the contract that the finished records of a run break, be they of test or of validation worlds."""
    return violations(_named(folder, read_rows(folder, split=None)))


def _named(folder: Path, rows: Frame) -> Frame:
    rows = with_robustness(with_costs(folder, rows.copy()))  # a copy: its columns lie together
    return with_answered_by(with_settings(with_keys(with_conditions(rows))))


def with_conditions(rows: Frame) -> Frame:
    """Rows, or one line a record and stage, with the column `condition`."""

    def condition(preset: str, encoder: str, control: str, overrides: str, stage: str) -> str:
        unsaid = control and not preset.startswith("controls/") and "control=" not in overrides  # a control whose name need not say so
        marks = f"control={control}" if unsaid else "", overrides.replace(";", ", "), stage.replace("test", "")
        return condition_name(preset, encoder.replace("own", ""), *marks)

    return rows.assign(condition=_each(rows[["preset", "encoder", "control", "preset_overrides", "stage"]], condition))


def with_keys(rows: Frame) -> Frame:
    """Rows with the columns `cluster`, the world that each is of, and `key`, its item, both with the seed."""
    seed = rows["seed"].astype(str).astype(object)
    return rows.assign(cluster=seed + "/" + rows["world"], key=seed + "/" + rows["item_id"])


def _each(columns: Frame, name: Callable[..., str]) -> Frame:
    """The name that the values of each row give, made once for all rows that are alike."""
    kind = columns.groupby(list(columns), sort=False, dropna=False).ngroup()
    names = [name(*values) for values in columns[~kind.duplicated()].itertuples(index=False, name=None)]
    return pd.Series(names, dtype=object).take(kind).set_axis(columns.index)


def with_settings(rows: Frame) -> Frame:
    """The rows of a whole run, or one line a record, with the columns `place` (what is asked, and of whom) and `setting` (the place, and
    the size where a suite has several)."""
    names = _place_names(rows)
    test = rows["split"] == "test"
    several = rows[test].groupby("suite")["n"].nunique() > 1
    first = rows[test].groupby(names[test])["n"].min()
    sizes = rows["n"].where(test, names.map(first))

    def setting(names: str, suite: str, n: float) -> str:
        return names + (f" · n={n:.0f}" if several.get(suite, False) and n == n else "")

    columns = pd.DataFrame({"place": names, "suite": rows["suite"], "n": sizes})
    return rows.assign(place=names, setting=_each(columns, setting))


def _place_names(rows: Frame) -> Frame:
    """A name for what each row was asked: its suite, with its model, profile and overrides where cells differ in them."""
    models = rows["model"].nunique() > 1
    several = rows.groupby("suite")[["profile", "suite_overrides"]].nunique() > 1

    def name_of(model: str, suite: str, profile: str, overridden: str) -> str:
        short = suite if not suite.startswith("folder:") else Path(suite).name
        profiles, overrides = several.loc[suite]
        parts = [model if models else "", short, profile if profiles else "", overridden.replace(";", ", ") if overrides else ""]
        return " · ".join(filter(None, parts))

    return _each(rows[["model", "suite", "profile", "suite_overrides"]], name_of)


def natural(name: str) -> list[tuple[str, int]]:
    """A sort key that counts: n_facts=8 before n_facts=128."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D+)(\d*)", name)]


def not_listed(cells: Sequence[RecordView]) -> str:
    """A sentence on the records whose items are not listed; empty where those of all are."""
    listed = sum(cell.listed for cell in cells)
    others = f"the first {LISTED} seeds of each setting; the items of the others stand in their metrics.csv"
    return "" if listed == len(cells) else f"Listed are {listed:,} of {len(cells):,} records, those of {others}."


def _unfinished(folder: Path) -> Iterable[dict[str, str]]:
    """Cells that began (they have a config snapshot) and have no done-marker; those set aside and the report's own are left out. Each with
    the last line of its error, which names it, and its notebook with the traceback, where it failed."""
    for path in folders_with("config_snapshot.yaml", folder):
        record, error = path.relative_to(folder).as_posix(), path / "error.txt"
        if not record.startswith("report/") and not (path / DONE).exists():
            lines = error.read_text(encoding="utf-8").strip().splitlines() if error.is_file() else []
            failed = {"notebook": f"{record}/notebook.failed.ipynb", "last_line": lines[-1]} if lines else {}
            yield {"record": record, "notebook": "", "last_line": "stopped before it was done", **failed}


@dataclass(frozen=True)
class Links:
    """Where the items behind a number are listed."""

    cells: list[RecordView]
    pairs_page: str

    def items(self, condition: str, regime: str, **where: str) -> str:
        """The page of a condition's items: its cell's page where there is one cell, else the setting's page."""
        regime = self.regime(condition, regime)
        here = [cell for cell in self.cells if cell.condition == condition and cell.regime == regime]
        fragment = _fragment(where)
        if len(here) == 1 and here[0].listed:
            return f"items/{here[0].page}" + (f"#{fragment[1:]}" if fragment else "")
        return f"items/{self.pairs_page}#a={quote(_column(condition, regime))}{fragment}"

    def differing(self, a: tuple[str, str], b: tuple[str, str], only: str = "both", **where: str) -> str:
        """The setting's page, showing only the items where a and b differ (`only`: where only one of them is right; `where`: of a rung)."""
        left, right = (quote(_column(name, self.regime(name, regime))) for name, regime in (a, b))
        return f"items/{self.pairs_page}#a={left}&b={right}&only={only}{_fragment(where)}"

    def regime(self, condition: str, regime: str) -> str:
        """The regime under which the record lies: conditions without a window have one record for both."""
        return regime if any(cell.regime == regime for cell in self.cells if cell.condition == condition) else "delayed"


def _fragment(where: dict[str, str]) -> str:
    return "".join(f"&{name}={quote(str(value))}" for name, value in where.items())


def _column(condition: str, regime: str) -> str:
    return f"{style_of(condition).label}, {regime}"


def with_costs(folder: Path, rows: Frame) -> Frame:
    """Rows of a run with these columns, in milliseconds, and `answered`, a number that is another for another answer.

    | column | what it counts |
    |---|---|
    | item_ms | the answer and the retrieval |
    | item_ms_first | the same with traces that were run for the first time |
    | teach_ms | what its world took to be taught, shared by the items of the world; NaN where nothing was taught |
    | item_ms_taught | item_ms_first and teach_ms |
    """
    total = rows["latency_ms"] + rows["retrieval_ms"].fillna(0.0)
    first = total + (rows["encode_ms"].fillna(0.0) if "encode_ms" in rows else 0.0)
    taught = teach_ms(folder, rows)
    answered = [zlib.crc32(text.encode()) for text in rows["pred"]]
    return rows.assign(item_ms=total, item_ms_first=first, teach_ms=taught, item_ms_taught=first + taught, answered=answered)


def with_robustness(rows: Frame) -> Frame:
    """Rows with the column `lost_per_10`, whose mean over a record is the score lost for ten more facts told since the right one (in the
    immediate regime: that stand behind it in the prompt): -10 times the slope of the least-squares line. A row has its part of the slope
    and its residual's, so that an interval of the mean by world is one of the slope. NaN where they are as many for each question."""
    if "lag" not in rows:
        return rows
    lag, score = rows["lag"].where(rows["regime"] != "immediate", rows["distance"]), rows["score"].where(rows["score"].abs() < math.inf)
    means = [values.where(lag.notna() & score.notna()).groupby(rows["record"]).transform("mean") for values in (lag, score)]
    x, y = lag - means[0], score - means[1]
    spread, shared = ((x * other).groupby(rows["record"]).transform("mean") for other in (x, y))
    slope = shared / spread.where(spread > 0)
    return rows.assign(lost_per_10=-10 * (slope + x * (y - slope * x) / spread))


def teach_ms(folder: Path, rows: Frame) -> Frame:
    """Each row's share of the time in which its world was taught to the stores that its cell reads, from the `teach.csv` of each cell that
    wrote one. The time of calibrating a gate, which all worlds share, is not in it."""
    prepared = prepared_in(folder)
    taught = {}
    for record in rows["record"].unique() if prepared else ():
        teachings = dict.fromkeys(taught_by(folder / str(record), prepared))  # two parts of a memory may read one store
        if teachings:
            taught[record] = pd.concat([pd.read_csv(teaching / TAUGHT, usecols=["world", "ms"]) for teaching in teachings])
    if not taught:
        nothing: Any = pd.Series(float("nan"), index=rows.index)
        return nothing
    of = ["record", "world"]
    ms: Any = pd.concat(taught, names=["record"]).groupby(of)["ms"].sum()
    items: Any = rows.groupby(of)["world"].transform("size")
    return ms.reindex(pd.MultiIndex.from_frame(rows[of])).set_axis(rows.index) / items


def prepared_in(folder: Path) -> dict[str, Path]:
    """The records of a run that taught or replayed, by the ids of their cells."""
    return {record.name: record for step in ("teach", "replay") for record in records_with(folder, dry_run=True, step=step)}


def taught_by(record: Path, prepared: dict[str, Path]) -> list[Path]:
    """The records that taught what a record rests on, itself or by way of a replay."""
    before = [prepared[cell] for cell in read_meta(record)["needs"].values() if cell in prepared]
    return [source for near in before for source in ([near] if (near / TAUGHT).is_file() else taught_by(near, prepared))]

"""The panel Compare: two conditions of a run on the same questions, the questions on which they differ, and what stands behind each."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import ipywidgets

from hippo_core.dashboard.index import RunIndex, RunPanel, read_index
from hippo_core.dashboard.page import piece, style
from hippo_core.dashboard.table import ItemTable
from hippo_core.errors import LabError, unknown
from hippo_core.protocols.questions.report.items import CSS_CLASSES, MARKS, RECALLED, recalled, shown_text, verdict_of
from hippo_core.protocols.questions.report.tables import numbers
from hippo_core.results import summaries
from hippo_core.results.conditions import base
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import missing
from hippo_core.results.frames import Frame
from hippo_core.results.records import run_names
from hippo_core.results.statistics.paired import Comparison

LABELS = {"run": "Run", "model": "Model", "suite": "Suite", "regime": "Regime", "a": "A", "b": "B"}
DIFFER, ONLY_A, ONLY_B, ALL = "differ", "a", "b", "all"
WHO = (("where they differ", DIFFER), ("only A right", ONLY_A), ("only B right", ONLY_B), ("all questions", ALL))
FACTS = {
    "questions": "n",
    "worlds": "worlds",
    "only A right": "only_a",
    "only B right": "only_b",
    "p, worlds' signs": "p",
    "p, McNemar": "p_mcnemar",
    "mid-p": "p_mid",
    "harmed": "harmed",
    "questions needed": "needed",
}


class ComparePanel(RunPanel):
    """Two conditions side by side. `runs`: the folder of all runs, `executed` of the lab unless it is said; `here`: the folder that links
    start from, the working folder unless it is said. `widget` is the panel, `result` what the statistics say, None where that is nothing.
    """

    def __init__(self, runs: Path | None = None, here: Path | None = None) -> None:
        super().__init__(LABELS, runs, "`make grid` makes one")
        self._here = here or Path.cwd()
        self.result: Comparison | None = None
        self._items: list[dict[str, Any]] = []
        self._tables: tuple[Frame, Frame] | None = None
        self.filters = {name: ipywidgets.Dropdown(description=name.capitalize(), options=[("all", "")]) for name in ("rung", "kind")}
        self.filters["who"] = ipywidgets.Dropdown(description="Show", options=WHO)
        self.table = ItemTable(label="questions")
        self._item = ipywidgets.HTML()
        for dropdown in self.filters.values():
            dropdown.style.description_width, dropdown.layout.width, dropdown.layout.margin = "initial", "auto", "2px 14px 2px 2px"
            dropdown.observe(lambda _: self._filter(), "value")
        self.table.observe(lambda _: self._show_item(), "selected")
        self._below = ipywidgets.VBox(
            [ipywidgets.HBox(list(self.filters.values()), layout={"flex_flow": "row wrap"}), self.table, self._item]
        )
        self.widget = ipywidgets.VBox([ipywidgets.HTML(style()), self._top, self._head, self._below])
        self.fill()

    def select(self, run: str, suite: str = "", a: str = "", b: str = "", model: str = "", regime: str = "", item: str = "") -> None:
        """Show a comparison. `suite` is a suite or a setting of the report, `a` and `b` are conditions, `item` is the key of a question;
        what is not said stays as it is, where the run has it. LabError for a name that there is not."""
        index = read_index(self._runs / run) if run in run_names(self._runs) else None
        if index is None:
            raise unknown("run", run, run_names(self._runs))
        setting, model = _setting(index, suite, model)
        self.fill(wanted={"run": run, "model": model, "suite": setting, "regime": regime, "a": a, "b": b})
        if item:
            if item not in {row["id"] for row in self.table.rows}:
                self.filters["who"].value = ALL
            self.table.selected = item

    def html(self) -> str:
        """What the panel shows, for a page without a kernel."""
        if self.result is None:
            return style() + self._head.value
        return style() + self._head.value + self.table.html() + self._item.value

    def _conditions(self, name: str) -> list[str]:
        conditions = self._index.conditions(self["suite"], self["regime"])
        offered = [condition for condition in conditions if name == "a" or condition != self["a"]]
        if not offered:
            alone = f"{style_of(self['a']).label} is the only condition here; there is nothing to compare it with."
            raise LabError(f"{alone}{self._index.but}")
        return offered

    def _default(self, name: str, values: Sequence[str]) -> str:
        """A memory against the first rag, delayed; else what comes first."""
        if name == "a":
            return self._memory(values) or values[-1]
        if name == "b":
            return next((value for value in values if base(value) in summaries.RIVAL_RAGS), values[0])
        return super()._default(name, values)

    def _show(self) -> None:
        if self.problem:
            self.result, self._tables, self._items = None, None, []
        self._below.layout.display = "none" if self.problem else ""
        self._refill_filters()
        self._filter()

    def _compared(self) -> str:
        index = self._index
        setting, asked, a, b = (self[name] for name in ("suite", "regime", "a", "b"))
        conditions = [(name, index.regime(setting, name, asked)) for name in (a, b)]
        if asked not in {regime for _, regime in conditions}:
            raise LabError(f"Neither has answers of its own in the regime {asked}; choose another.")
        cells = index.of(setting)
        here = [(cells["condition"] == name) & (cells["regime"] == regime) for name, regime in conditions]
        rows = index.rows(cells[here[0] | here[1]])
        self.result = summaries.pair(rows, conditions[0], conditions[1])
        if self.result is None or not self.result.n:
            raise LabError("A and B were not asked the same questions, or none of them was scored; there is nothing to compare.")
        first, second = (rows[(rows["condition"] == name) & (rows["regime"] == regime)].set_index("key") for name, regime in conditions)
        self._tables = first, second.reindex(first.index.intersection(second.index))
        self._items = _items(*self._tables)
        words = numbers(self.result)
        names = [style_of(name).label + ("" if regime == asked else f", {regime}") for name, regime in conditions]
        where = ", ".join(self[name] for name in ("run", "model", "suite", "regime"))
        facts = [(label, words[name]) for label, name in FACTS.items()]
        pair = {**words, "name_a": names[0], "name_b": names[1], "where": where, "facts": facts}
        return piece("pair", pair) + self._notes(index.broken(setting, (a, b), asked))

    def _refill_filters(self) -> None:
        for name in ("rung", "kind"):
            there = {item[name] for item in self._items} - {""}
            known = [value for value in summaries.RUNGS if value in there] + sorted(there - set(summaries.RUNGS))
            before = self.filters[name].value
            self.filters[name].options = [("all", ""), *((value, value) for value in known)]
            self.filters[name].value = before if before in known else ""

    def _filter(self) -> None:
        rung, kind, who = (str(self.filters[name].value) for name in ("rung", "kind", "who"))
        kept = [entry for entry in self._items if rung in ("", entry["rung"]) and kind in ("", entry["kind"]) and _is(entry["better"], who)]
        columns = _columns(self._items)
        if columns != self.table.columns:
            self.table.rows = []
            self.table.columns = columns
        self.table.rows = kept
        self._show_item()

    def _show_item(self) -> None:
        self._item.value = piece("item", self._described(self.table.selected)) if self.table.selected and self._tables else ""

    def _described(self, key: str) -> dict[str, Any]:
        assert self._tables is not None
        first, second = (table.loc[key] for table in self._tables)
        answers = [self._answer_view("A", self["a"], first), self._answer_view("B", self["b"], second)]
        return {"id": key, "gold": first["answer"], **{name: first[name] for name in ("question", "rung", "kind")}, "sides": answers}

    def _answer_view(self, letter: str, condition: str, row: Mapping[str, Any]) -> dict[str, Any]:
        verdict = verdict_of(row["score"])
        path = Path(os.path.relpath(self._runs / self["run"] / row["record"] / "notebook.ipynb", self._here)).as_posix()
        return {
            "letter": letter,
            "name": style_of(condition).label,
            "mark": MARKS[verdict],
            "look": CSS_CLASSES[verdict],
            "answer": shown_text(row["pred"]),
            "recalled": recalled(row.get(RECALLED)),
            "prompt": row["prompt"],
            "notebook": quote(path),
        }


def _setting(index: RunIndex, suite: str, model: str) -> tuple[str, str]:
    """The setting that a name stands for, itself or the first of a suite, and its model."""
    cells = index.cells if not model else index.cells[index.cells["model"] == model]
    if cells.empty:
        raise unknown("model", model, index.models)
    if not suite:
        return "", model
    for column in ("setting", "suite"):
        if (mine := cells[cells[column] == suite]).size:
            model = str(mine["model"].iloc[0])
            return next(setting for setting in index.settings(model) if setting in set(mine["setting"])), model
    raise unknown("suite", suite, {*cells["setting"], *cells["suite"]})


def _items(first: Frame, second: Frame) -> list[dict[str, Any]]:
    """The questions of both with who was better on each: 1 for A, -1 for B, 0 for neither, None where one has no score."""
    items = []
    several = first["seed"].nunique() > 1
    columns = ["item_id", "rung", "kind", "question", "answer", "score", "pred"]
    rows, others = (table.loc[second.index, columns].to_dict("records") for table in (first, second))
    for key, row, other in zip(second.index, rows, others, strict=True):
        a, b = (None if missing(answer["score"]) else float(answer["score"]) for answer in (row, other))
        item = {"id": key, "item": key if several else row["item_id"], "gold": row["answer"], "a": a, "b": b}
        item |= {"pred_a": shown_text(row["pred"]), "pred_b": shown_text(other["pred"])}
        item |= {name: row[name] for name in ("rung", "kind", "question")}
        items.append(item | {"better": None if a is None or b is None else (a > b) - (a < b)})
    return items


def _is(better: int | None, who: str) -> bool:
    return who == ALL or (better in (1, -1) if who == DIFFER else better == {ONLY_A: 1, ONLY_B: -1}[who])


def _columns(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Marks where scores are 0 or 1, else the scores."""
    binary = all(item[letter] in (0.0, 1.0, None) for item in items for letter in ("a", "b"))
    score = {"kind": "mark"} if binary else {"kind": "number", "digits": 2}
    texts = {"item": "Item", "rung": "Rung", "kind": "Kind", "question": "Question", "gold": "Right answer"}
    return [
        *({"name": name, "label": label, "kind": "text"} for name, label in texts.items()),
        {"name": "a", "label": "A", **score},
        {"name": "pred_a", "label": "A's answer", "kind": "text"},
        {"name": "b", "label": "B", **score},
        {"name": "pred_b", "label": "B's answer", "kind": "text"},
    ]

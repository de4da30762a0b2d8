"""The panel Ablate: what a memory loses, or gains, with each of its parts off or set otherwise; answers beside recall, sweeps as lines."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets

from hippo_core.dashboard.index import RunPanel
from hippo_core.dashboard.page import piece, style
from hippo_core.dashboard.table import ItemTable
from hippo_core.errors import LabError
from hippo_core.lab import widgets
from hippo_core.lab.grid.expand import grid_names
from hippo_core.methods.presets import extended
from hippo_core.protocols.questions.sweeps import Sweep, sweeps
from hippo_core.results import summaries
from hippo_core.results.conditions import INVALID, base, is_control
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import count, share
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.paired import Comparison

LABELS = {"run": "Run", "model": "Model", "suite": "Suite", "regime": "Regime", "full": "Full memory"}
COLUMNS: list[dict[str, Any]] = [
    {"name": "name", "label": "Without, or with", "kind": "text"},
    {"name": "n", "label": "n", "kind": "number"},
    {"name": "score", "label": "Answers", "kind": "number", "digits": 2},
    {"name": "answers", "label": "Answers against the full memory", "kind": "interval"},
    {"name": "recall", "label": "Recall against the full memory", "kind": "interval"},
]
RECALLS = {"found": "the right fact found", "recall_1": "the right fact first"}  # the first that was measured


class AblatePanel(RunPanel):
    """Every ablation of a memory against it. `runs`: the folder of all runs, `executed` of the lab unless it is said; `on_choose` is called
    with run, suite, a (the ablation), b (the full memory) and regime when a row is chosen; `start` starts a grid and returns its view.
    `widget` is the panel, `results` what the statistics say of each ablation: of its answers, and of its recall."""

    def __init__(
        self,
        runs: Path | None = None,
        on_choose: Callable[..., object] | None = None,
        start: Callable[..., ipywidgets.Widget] = widgets.start,
    ) -> None:
        super().__init__(LABELS, runs, "choose a grid below and run it, or run make grid")
        self._on_choose, self._start = on_choose, start
        self.results: dict[str, tuple[Comparison, Comparison | None]] = {}
        self._sweeps: list[Sweep] = []
        self.table = ItemTable(columns=COLUMNS, label="ablations")
        self.table.observe(self._choose, "selected")
        self._picture, self._error = ipywidgets.HTML(), ipywidgets.HTML()
        self.sweep = ipywidgets.Dropdown(description="Sweep along", options=[], layout={"width": "auto"})
        self.sweep.style.description_width = "initial"
        self.sweep.observe(lambda _: self._draw(), "value")
        self.grid = ipywidgets.Dropdown(description="Grid", options=grid_names(), layout={"width": "auto"})
        self.missing = ipywidgets.Button(description="Run what is missing", icon="play", layout={"width": "180px"})
        self.missing.tooltip = "Run the cells of this grid that the run has no finished record of; what is finished is kept"
        self.missing.on_click(lambda _: self.run_missing())
        self._work = ipywidgets.VBox([])
        row = ipywidgets.HBox([self.grid, self.missing], layout={"flex_flow": "row wrap"})
        shown = [ipywidgets.HTML(style()), self._top, self._head, self.table, self.sweep, self._picture, row, self._error, self._work]
        self.widget = ipywidgets.VBox(shown)
        self.fill()

    def run_missing(self) -> None:
        """Start the chosen grid on the run, and show how it comes along; when it ends the panel reads the records anew."""
        try:
            view = self._start(self.grid.value, run_id=self["run"] or self.grid.value)
        except LabError as error:
            self._error.value = piece("note", error)
            return
        self._error.value, self._work.children = "", (view,)
        if (following := getattr(view, "following", None)) is not None:
            following.add_done_callback(lambda _: self.refresh())

    def html(self) -> str:
        """What the panel shows, for a page without a kernel."""
        return style() + self._head.value + (self.table.html() if self.results else "") + self._picture.value

    def _conditions(self, name: str) -> list[str]:
        memories = _memories(self._index.conditions(self["suite"], self["regime"]))
        if not memories:
            missing = f"Run {self['run']} has no memory with an ablation here: a grid with both makes them."
            raise LabError(f"{missing}{self._index.but}")
        return memories

    def _default(self, name: str, values: Sequence[str]) -> str:
        index = self._index
        if name == "suite":  # the first that has ablations
            with_ablations = (value for value in values for regime in index.regimes(value) if _memories(index.conditions(value, regime)))
            return next(with_ablations, values[0])
        if name == "full":
            return self._memory(values) or values[0]
        return super()._default(name, values)

    def _show(self) -> None:
        if self.problem:
            self.results, self.table.rows = {}, []
        self.table.layout.display = "" if self.results else "none"
        if self["run"] in self.grid.options:
            self.grid.value = self["run"]
        self._find_sweeps()

    def _compared(self) -> str:
        """Compare every ablation with the full memory."""
        self.results, index = {}, self._index
        setting, asked, full = (self[name] for name in ("suite", "regime", "full"))
        names = ablations_of(full, index.conditions(setting, asked))
        conditions = {name: (name, index.regime(setting, name, asked)) for name in (full, *names)}
        cells = index.of(setting)
        wanted = [(condition, regime) in conditions.values() for condition, regime in zip(cells["condition"], cells["regime"], strict=True)]
        rows = index.rows(cells[wanted])
        measure = next((name for name in RECALLS if name in rows and rows.loc[rows["condition"] == full, name].notna().any()), "")
        for name in names:
            answers = summaries.pair(rows, conditions[name], conditions[full])
            if answers is not None and answers.n:
                self.results[name] = answers, summaries.pair(rows, conditions[name], conditions[full], measure) if measure else None
        if not self.results:
            raise LabError(f"No ablation of {style_of(full).label} was asked the questions that it was asked.")
        broken = index.broken(setting, (full, *names), asked)
        invalid = {one.condition for one in broken}
        self.table.rows = [
            {
                "id": name,
                "name": style_of(name).label + (f" ({INVALID})" if name in invalid else ""),
                "n": answers.n,
                "score": answers.mean_a,
                "answers": _bar(answers),
                "recall": _bar(recall),
            }
            for name, (answers, recall) in self.results.items()
        ]
        return piece("forest", _full(rows[rows["condition"] == full], full, measure)) + self._notes(broken)

    def _choose(self, _: object) -> None:
        chosen = self.table.selected
        if not chosen:
            return
        self.table.selected = ""  # a row opens, as a button does: the same one may be chosen again
        if self._on_choose:
            chosen_run = {name: self[name] for name in ("run", "suite", "regime")}
            try:
                self._on_choose(**chosen_run, a=chosen, b=self["full"])
            except LabError as error:
                self._error.value = piece("note", error)

    def _find_sweeps(self) -> None:
        self._sweeps = []
        if self["suite"]:
            cells = self._index.cells
            suite = self._index.of(self["suite"])["suite"].iloc[0]
            self._sweeps = sweeps(cells[(cells["model"] == self["model"]) & (cells["suite"] == suite)])
        self.sweep.options = [(_axis(sweep), index) for index, sweep in enumerate(self._sweeps)]
        self.sweep.value = 0 if self._sweeps else None
        self.sweep.layout.display = "" if self._sweeps else "none"
        self._draw()

    def _draw(self) -> None:
        from hippo_core.protocols.questions.figures.plots import sweep_figure
        from hippo_core.results.figures.drawing import png

        self._picture.value = ""
        if self.sweep.value is not None and self.sweep.value < len(self._sweeps):
            sweep = self._sweeps[self.sweep.value]
            try:
                drawn = png(sweep_figure(replace(sweep, rows=self._index.rows(sweep.rows))))
                self._picture.value = piece("sweep", base64.b64encode(drawn).decode(), f"Along {_axis(sweep)}")
            except LabError as error:
                self._picture.value = piece("note", error)


def ablations_of(full: str, conditions: Sequence[str]) -> list[str]:
    """Those of the conditions that extend the preset of a memory, or override settings of it; controls are none of them."""
    return [name for name in conditions if name != full and not is_control(name) and _of(base(name), base(full))]


def _of(preset: str, memory: str) -> bool:
    try:
        return preset == memory or memory in extended(preset)
    except LabError:  # the record may come from another machine, where the preset is
        return preset.startswith("ablations/")


def _memories(conditions: Sequence[str]) -> list[str]:
    """The memories that have an ablation among the conditions."""
    own = [name for name in conditions if base(name).split("/")[0] not in ("baselines", "controls", "ablations") and not is_control(name)]
    return [name for name in own if ablations_of(name, conditions)]


def _full(rows: Frame, name: str, measure: str) -> dict[str, str]:
    recall = f", {RECALLS[measure]} for {share(rows[measure].mean())}" if measure else ""
    answered = f"{share(rows['score'].mean())} of {count(rows['score'].notna().sum())} questions answered right"
    return {"name": style_of(name).label, "said": f"{answered}{recall}", "recall": RECALLS.get(measure, "not measured")}


def _bar(result: Comparison | None) -> list[float | None]:
    return [result.difference, result.low, result.high] if result is not None and result.n else [None, None, None]


def _axis(sweep: Sweep) -> str:
    return f"{sweep.axis}, {sweep.shared('regime')}, n = {sweep.shared('n')}"

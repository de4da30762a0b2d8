"""The dashboard: the panels Ask, Compare and Ablate in tabs, and their last state as HTML for a saved notebook without a kernel."""

from pathlib import Path
from typing import Any

import ipywidgets
from IPython.display import HTML, DisplayHandle, display

from hippo_core.files import root
from hippo_core.lab.dashboard.ablate import AblatePanel
from hippo_core.lab.dashboard.ask import AskPanel
from hippo_core.lab.dashboard.compare import ComparePanel
from hippo_core.results.records import RUNS

TITLES = ("Ask", "Compare", "Ablate")
HIDDEN = "<style>.jp-Cell:has(.hippo-dashboard) .hippo-saved, .voila-cell:has(.hippo-dashboard) .hippo-saved { display: none; }</style>"


class Dashboard:
    """Three panels. A point that is chosen in Ablate opens Compare with its two conditions.

    Args:
        runs: the folder of all runs; `executed` of the lab unless it is said.
        run: the run that Compare and Ablate open; the newest unless it is said.
        model, preset, suite: what Ask begins with; without a suite sentences of one's own.
    """

    def __init__(self, model: str = "hippo-tiny", preset: str = "memory/hei_nw", suite: str = "", run: str = "", runs: Path | None = None):
        self._saved: DisplayHandle | None = None
        runs = runs or root() / RUNS
        self.ask = AskPanel(model, preset, suite, changed=lambda _: self.save())
        self.compare = ComparePanel(runs)
        self.ablate = AblatePanel(runs, self._open)
        if run:
            self.compare.select(run)
            self.ablate.choices.fill(wanted={"run": run})
        self.widget = ipywidgets.Tab([self.ask.widget, self.compare.widget, self.ablate.widget], titles=TITLES)
        self.widget.add_class("hippo-dashboard")
        self.widget.observe(lambda _: self.save(), names="selected_index")

    def _open(self, **chosen: str) -> None:
        self.compare.select(**chosen)
        self.widget.selected_index = TITLES.index("Compare")

    def show(self) -> None:
        """Display the panels, and behind them their state for a reader who has no kernel; it is hidden where the panels live."""
        display(self.widget)
        self._saved = display(HTML(self.saved()), display_id=True)

    def saved(self) -> str:
        """The last state of all panels as HTML, which needs no kernel and no network."""
        panels = zip(TITLES, (self.ask, self.compare, self.ablate), strict=True)
        return HIDDEN + '<div class="hippo-saved">' + "".join(f"<h3>{title}</h3>{panel.html()}" for title, panel in panels) + "</div>"

    def save(self) -> None:
        """Put the panels' state into the notebook, so that it is there when the notebook is saved."""
        if self._saved is not None:
            self._saved.update(HTML(self.saved()))

    def close(self) -> None:
        """Let the stores of Ask go, and take the panels away."""
        self.ask.close()
        self.widget.close()


def dashboard(**wanted: Any) -> Dashboard:
    """Make a dashboard and show it; the arguments are those of `Dashboard`."""
    made = Dashboard(**wanted)
    made.show()
    return made

"""The dashboard: the panels Ask, Compare and Ablate in tabs, and their last state as HTML for a saved notebook without a kernel.

Ask is there at once; the two that read runs bring seconds of imports with them and are made when their tab is first turned to.
"""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets
from IPython.display import HTML, DisplayHandle, display

from hippo_core.dashboard import page
from hippo_core.dashboard.ask import AskPanel
from hippo_core.errors import unknown
from hippo_core.files import root
from hippo_core.results.records import RUNS, run_names

if TYPE_CHECKING:
    from hippo_core.dashboard.ablate import AblatePanel
    from hippo_core.dashboard.compare import ComparePanel
    from hippo_core.live.answer import Answer

TITLES = ("Ask", "Compare", "Ablate")
HIDDEN = "<style>.jp-Cell:has(.hippo-dashboard) .hippo-saved, .voila-cell:has(.hippo-dashboard) .hippo-saved { display: none; }</style>"


class Dashboard:
    """Three panels. A point that is chosen in Ablate opens Compare with its two conditions.

    Args:
        runs: the folder of all runs; `executed` of the lab unless it is said.
        run: the run that Compare and Ablate open; the newest unless it is said.
        model, preset, suite: what Ask begins with; without a suite sentences of one's own.

    Raises:
        LabError: a run, model, preset or suite that there is not.
    """

    def __init__(self, model: str = "hippo-tiny", preset: str = "memory/hei_nw", suite: str = "", run: str = "", runs: Path | None = None):
        self._saved: DisplayHandle | None = None
        self._runs, self._run = runs or root() / RUNS, run
        if run and run not in run_names(self._runs):
            raise unknown("run", run, run_names(self._runs))
        self.ask = AskPanel(model, preset, suite, changed=lambda _: self.save())
        waiting = [ipywidgets.HTML(page.line("Reading the run", busy=True)) for _ in TITLES[1:]]
        self.widget = ipywidgets.Tab([self.ask.widget, *waiting], titles=TITLES)
        self.widget.add_class("hippo-dashboard")
        self.widget.observe(lambda _: self._turn(), names="selected_index")

    @cached_property
    def compare(self) -> "ComparePanel":
        """The panel Compare, made when it is first asked for."""
        from hippo_core.dashboard.compare import ComparePanel

        return self._in_tab("Compare", ComparePanel(self._runs))

    @cached_property
    def ablate(self) -> "AblatePanel":
        """The panel Ablate, made when it is first asked for."""
        from hippo_core.dashboard.ablate import AblatePanel

        return self._in_tab("Ablate", AblatePanel(self._runs, self._open))

    def _in_tab(self, title: str, panel: Any) -> Any:
        """A panel in its tab, on the run that the dashboard was made for."""
        if self._run:
            panel.fill(wanted={"run": self._run})
        index = TITLES.index(title)
        self.widget.children = (*self.widget.children[:index], panel.widget, *self.widget.children[index + 1 :])
        return panel

    def _turn(self) -> None:
        if self.widget.selected_index is not None:
            getattr(self, TITLES[self.widget.selected_index].lower())
        self.save()

    def _open(self, **chosen: str) -> None:
        self.compare.select(**chosen)
        self.widget.selected_index = TITLES.index("Compare")

    def show(self) -> None:
        """Display the panels, and behind them their state for a reader who has no kernel; it is hidden where the panels live."""
        display(self.widget)
        self._saved = display(HTML(self.saved()), display_id=True)

    def answer_now(self) -> "Answer":
        """Answer the question as it stands, then make the other panels, before this returns: a notebook that is saved shows all three.
        LabError where the question is not answered."""
        answer = self.ask.answer_now()
        _ = self.compare, self.ablate
        self.save()
        return answer

    def saved(self) -> str:
        """The last state of the panels that were made, as HTML, which needs no kernel and no network."""
        made = [(title, vars(self)[title.lower()]) for title in TITLES if title.lower() in vars(self)]
        return HIDDEN + '<div class="hippo-saved">' + "".join(f"<h3>{title}</h3>{panel.html()}" for title, panel in made) + "</div>"

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

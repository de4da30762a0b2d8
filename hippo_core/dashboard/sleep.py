"""The section Sleep of the Ask panel: taught sentences are rehearsed into the model, and the gain stands beside the answers before."""

import time
from collections.abc import Iterator

import ipywidgets

from hippo_core.dashboard import page
from hippo_core.dashboard.session import AnswerUplift, Scene, Session, Setup
from hippo_core.discovery import members
from hippo_core.errors import LabError

RULES = "hippo_core.training.consolidation.update_rules"
QUESTIONS = 5  # the last ones, whose answers stand side by side


class SleepSection:
    """Widgets and works. `widget` are the controls and the state, `gains` the table; `sleep` and `wake` are the panel's to wire.

    Args:
        session: which holds the models that sleep.
    """

    def __init__(self, session: Session) -> None:
        w = ipywidgets
        self._session, self._uplifts, self._of = session, dict[str, AnswerUplift](), object()
        self._asked: list[str] = []
        self.update_rule = w.Dropdown(options=list(members(RULES)), value="gated_lora", description="by", layout={"width": "auto"})
        self.steps = w.BoundedIntText(value=200, min=1, max=100_000, description="steps", layout={"width": "170px"})
        self.sleep = w.Button(description="Sleep on what it was told", icon="moon-o", layout={"width": "auto"})
        self.sleep.tooltip = "Rehearse these sentences into the model, so that it answers without recalling them"
        self.off = w.Checkbox(value=False, description="memory off: answer without recall", indent=False, layout={"width": "auto"})
        self.wake = w.Button(description="Forget what sleep brought", icon="undo", layout={"width": "auto", "display": "none"})
        self.wake.tooltip = "Back to the unchanged model; what was told stays told"
        self.state, self.gains = w.HTML(), w.HTML()
        shown = [w.HTML("<b>Sleep</b>"), self.update_rule, self.steps, self.sleep, self.state, self.off, self.wake]
        self.widget = w.VBox(shown, layout={"margin": "14px 0"})

    def lock(self, busy: bool) -> None:
        """No second sleep, and no waking, while something is being done."""
        self.sleep.disabled = self.wake.disabled = busy

    def sleeping(self, scene: Scene, setup: Setup, question: str, progress: ipywidgets.IntProgress) -> Iterator[str]:
        """Sleep on a scene, then ask the last questions again. LabError where there is nothing to rehearse."""
        if not scene.observations:
            raise LabError("there is nothing to sleep on: type a sentence a line, drop a file, or choose a suite")
        self.remember(question)
        steps, begin = self.steps.value, time.monotonic()
        progress.value, progress.max = 0, steps
        for done in self._session.sleep(scene, setup, str(self.update_rule.value), steps):
            progress.value = done
            if done == 0:
                yield "falling asleep"
                continue
            begin = time.monotonic() if done == 1 else begin
            yield f"asleep: step {done:,} of {steps:,}{_left(time.monotonic() - begin, done - 1, steps - done)}"
        self.show(scene, setup)
        yield from self.compare(scene, setup)

    def remember(self, question: str) -> None:
        """A question that was asked: one of those whose answers are compared."""
        if question.strip():
            self._asked = [question, *(asked for asked in self._asked if asked != question)][:QUESTIONS]

    def forget_questions(self) -> None:
        """Other things are told: the questions were about what was before."""
        self._asked, self._uplifts, self.gains.value = [], {}, ""

    def compare(self, scene: Scene, setup: Setup) -> Iterator[str]:
        """Ask the last questions with the memory, and without it before and after sleep. Nothing where the model has not slept."""
        slept = self._session.consolidated(setup.model)
        if slept is None:
            return
        of = (scene, setup.stored, sorted(setup.settings.items()), slept)
        if of != self._of:
            self._uplifts, self._of = {}, of
        for number, question in enumerate(self._asked, start=1):
            if question not in self._uplifts:
                yield f"question {number} of {len(self._asked)}, with the memory and without"
                self._uplifts[question] = self._session.uplift(scene, setup, question)
        self.gains.value = page.uplift_table(self.uplifts)

    def show(self, scene: Scene, setup: Setup) -> None:
        """Say what of a scene sleep has put into the model."""
        slept = self._session.consolidated(setup.model)
        self.wake.layout.display = "none" if slept is None else ""
        if slept is None:
            self.gains.value = ""
        self.state.value = page.slept(slept, [observation.statement.text for observation in scene.observations])

    @property
    def uplifts(self) -> list[AnswerUplift]:
        """What the last sleep brought for the last questions, the latest first."""
        return [self._uplifts[question] for question in self._asked if question in self._uplifts]

    def html(self) -> str:
        """What the section says, without a kernel."""
        return self.state.value + self.gains.value if self.wake.layout.display != "none" else ""


def _left(seconds: float, done: int, remaining: int) -> str:
    """How long the remaining steps take, if they take as long as those that are done."""
    if not done:
        return ""
    left = seconds / done * remaining
    return f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left"

"""The Ask panel: sentences are told on the spot, a question is answered, a switch is flipped, and both answers stand side by side.

A switch that is flipped while something is being done is answered when that has ended.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ipywidgets

from hippo_core.dashboard import page
from hippo_core.dashboard.controls import Controls
from hippo_core.dashboard.session import (
    OWN,
    Scene,
    Session,
    SettingChange,
    Setup,
    command,
    live_presets,
    own_sentences,
    paired,
    python,
    scenes_of,
    upload,
)
from hippo_core.dashboard.sleep import SleepSection
from hippo_core.dashboard.turns import Turns
from hippo_core.errors import LabError
from hippo_core.files import in_a_line
from hippo_core.models.packages.pins import missing
from hippo_core.models.spec import load_spec, model_names
from hippo_core.results.scores import score_item
from hippo_core.suites import suite_names
from hippo_core.suites.types import Item

if TYPE_CHECKING:
    from hippo_core.live.answer import Answer

WORLDS = 10  # questions of a suite that can be chosen from: those of its first worlds
EXAMPLE = "Anna left the bicycle at the station.\nBen gave the lamp to Carl.\nDora put the violin in the attic."


class AskPanel:
    """A live memory. `changed` is called with the panel's state as HTML whenever that changes."""

    def __init__(
        self,
        model: str = "hippo-tiny",
        preset: str = "memory/hei_nw",
        suite: str = "",
        changed: Callable[[str], None] = lambda html: None,
    ) -> None:
        self.setup, self.before_setup = Setup(model, preset), Setup(model, preset, {"control": "empty"})
        self.session, self.scenes = Session(), list[Scene]()
        self.flip: SettingChange | None = None
        self._changed, self.turns, self.sleep = changed, Turns(self._on_turn, self._answering), SleepSection(self.session)
        self._make_widgets(model, preset)
        self._draw_controls()
        self.sleep.show(self.scene, self.setup)
        if suite:
            self.source.value = suite

    def _make_widgets(self, model: str, preset: str) -> None:
        w = ipywidgets
        presets, auto = live_presets(), {"width": "auto"}
        self.model = w.Dropdown(options=model_names(), value=model, description="model", layout=auto)
        offered = [*presets, *([preset] if preset not in presets else [])]
        self.preset = w.Dropdown(options=offered, value=preset, description="memory", layout=auto)
        self.source = w.Dropdown(options=[OWN, *suite_names()], value=OWN, description="told", layout=auto)
        self.world = w.Dropdown(options=[], description="world", layout={**auto, "display": "none"})
        self.sentences = w.Textarea(value=EXAMPLE, placeholder="a sentence a line", layout={**auto, "height": "150px"})
        self.file = w.FileUpload(accept=".txt,.md", description="a file", tooltip="a text file, a sentence a line")
        self.teach = self._button("Teach", "book", "Tell the memory these sentences", self._teaching)
        self.cancel = w.Button(description="Cancel", icon="stop", layout={"display": "none"})
        self.progress = w.IntProgress(layout={"display": "none", "width": "180px"})
        self.question = w.Combobox(
            value="Where did Anna leave the bicycle?", placeholder="a question", ensure_option=False, continuous_update=False,
            layout={**auto, "flex": "1 1 auto"},
        )  # fmt: skip
        self.ask = self._button("Ask", "question", "", self._answering)
        self.ask.button_style = "primary"
        all_questions = "The last change over all questions of some worlds of the suite"
        self.ask_all = self._button("Ask all", "list", all_questions, self._asking_all)
        self.count = w.BoundedIntText(value=30, min=1, max=1000, description="questions", layout={"width": "170px"})
        self.reproduce = w.Button(description="Reproduce", icon="copy", tooltip="The command and the lines of Python that do the same")
        self.reset = w.Button(description="As preset", icon="undo", tooltip="All settings as the preset has them")
        self.status, self.answer, self.gate, self.all, self.lines = (w.HTML() for _ in range(5))
        self.switches = w.VBox()
        self.file.layout.flex = self.teach.layout.flex = "1 1 0"
        left = [self.model, self.preset, self.source, self.world, self.sentences, w.HBox([self.file, self.teach]), self.sleep.widget]
        middle = [w.HBox([self.question, self.ask]), w.HBox([self.status, self.progress, self.cancel]), self.answer, self.sleep.gains]
        middle += [w.HBox([self.ask_all, self.count, self.reproduce]), self.all, self.lines, self.gate]
        heading = w.HBox([w.HTML("<b>Switches</b>"), self.reset], layout={"justify_content": "space-between"})
        columns = [
            w.VBox(left, layout={"width": "330px", "flex": "0 0 auto"}),
            w.VBox(middle, layout={"flex": "1 1 420px", "min_width": "380px", "padding": "0 18px"}),
            w.VBox([heading, self.switches], layout={"width": "350px", "flex": "0 0 auto"}),
        ]
        self.widget = w.HBox(columns, layout={"flex_flow": "row wrap", "align_items": "flex-start"})
        self._wire()

    def _button(self, text: str, icon: str, tooltip: str, work: Callable[[], Iterator[str]]) -> ipywidgets.Button:
        button = ipywidgets.Button(description=text, icon=icon, tooltip=tooltip)
        button.on_click(lambda _: self.turns.start(work()))
        return button

    def _wire(self) -> None:
        """What a change of each widget does; a mistake is a line of the status."""
        changes: list[tuple[Any, Callable[[Any], None]]] = [
            (self.source, self._load_suite),
            (self.world, self._load_world),
            (self.file, lambda _: self._take_file()),
            (self.sentences, lambda _: self._show_sleep()),
            (self.model, self._switch_model),
            (self.preset, self._switch_preset),
            (self.question, lambda _: self.turns.start(self._answering())),
            (self.sleep.off, lambda off: self._switch(replace(self.setup, recall=not off))),
        ]
        for widget, do in changes:
            widget.observe(lambda change, do=do: self._safely(do, change["new"]), names="value")
        self.cancel.on_click(lambda _: self.turns.cancel())
        self.sleep.sleep.on_click(lambda _: self.turns.start(self._sleeping()))
        self.sleep.wake.on_click(lambda _: self._safely(self._wake))
        self.reset.on_click(lambda _: self._switch(replace(self.setup, settings={})))
        self.reproduce.on_click(lambda _: self._safely(self._show_lines))

    def _draw_controls(self) -> None:
        self.controls = Controls(self.setup.loaded.settings, lambda key, value: self._safely(self._set, key, value))
        self.switches.children = (self.controls.widget,)

    def html(self) -> str:
        """The panel's state with no kernel and no network."""
        state = "; ".join(f"{name} {value}" for name, value in self._state().items())
        texts = "".join(page.Markup("<li>{}</li>").format(observation.statement.text) for observation in self.scene.observations[:50])
        head = page.framed(f"<h4>{page.escape(state)}</h4><ol>{texts}</ol><h4>{page.escape(self.question.value)}</h4>")
        below = self.all.value + self.lines.value + self.gate.value
        return head + self.status.value + self.answer.value + self.sleep.html() + below

    def _state(self) -> dict[str, str]:
        settings = ", ".join(f"{key}={value}" for key, value in sorted(self.setup.settings.items())) or "as the preset has them"
        return {"model": self.setup.model, "memory": self.setup.preset, "settings": settings, "told": self.scene.name} | (
            {} if self.setup.recall else {"recall": "off"}
        )

    def _show_line(self, text: str, bad: bool = False) -> None:
        self.status.value = page.line(text, bad)
        self._changed(self.html())

    @property
    def scene(self) -> Scene:
        """What is told: the sentences as they stand, or the world that is chosen."""
        if self.source.value == OWN or not self.scenes:
            return own_sentences(self.sentences.value)
        return self.scenes[self.world.index or 0]

    @property
    def item(self) -> Item | None:
        """The suite's own item, where its question is asked."""
        return self.scene.item(self.question.value)

    def _teaching(self) -> Iterator[str]:
        scene = self.scene
        if not scene.observations:
            raise LabError("there is nothing to teach: type or paste a sentence a line, drop a file, or choose a suite")
        yield from self._taught(scene, self.setup)
        self._show_gate()
        yield f"{len(scene.observations)} sentences are told; ask."

    def _taught(self, scene: Scene, setup: Setup) -> Iterator[str]:
        self.progress.value = 0
        if self.session.loads(setup.model):
            yield f"Loading {setup.model}: some seconds, once"
        of = len(scene.observations)
        self.progress.max = max(1, of)
        for done in self.session.teach(scene, setup):
            self.progress.value = done
            if done < of:
                yield f"{done:,} of {of:,} sentences are told"

    def _answering(self) -> Iterator[str]:
        scene, setup, question, item = self.scene, self.setup, self.question.value, self.item
        if not scene.observations and setup.recall:
            raise LabError("there is nothing to ask about: teach a sentence first")
        yield from self._taught(scene, setup)
        answer = self.session.ask(scene, setup, question, item)
        before = self.flip.now if self.flip and self.flip.question == question else None
        self.flip = SettingChange(question, answer, before)
        score = score_item(scene.suite, scene.world, item, answer.text)["score"] if item and scene.suite and scene.world else None
        self.answer.value = page.answer(
            self.flip, item.answers[0] if item else None, None if score is None else score > 0, self.session.pictures(scene, setup, answer)
        )
        self._show_gate()
        if self.lines.value:  # those that were asked for stand for what is shown
            self._show_lines()
        self.sleep.remember(question)
        yield from self.sleep.compare(scene, setup)
        yield ""

    def _sleeping(self) -> Iterator[str]:
        scene, setup, question = self.scene, self.setup, self.question.value
        yield from self.sleep.sleeping(scene, setup, question, self.progress)
        if question.strip():
            yield from self._answering()
        yield "Awake again. Tick \u201cmemory off\u201d to ask the model without recall." if setup.recall else ""

    def _wake(self) -> None:
        self.session.wake(self.setup.model)
        self._show_sleep()
        self.turns.start(self._answering()) if self.flip else self._show_line("")

    def _show_sleep(self) -> None:
        self.sleep.show(self.scene, self.setup)

    def _show_gate(self) -> None:
        self.gate.value = page.decided(self.session.decisions)

    def _asking_all(self) -> Iterator[str]:
        if self.source.value == OWN:
            raise LabError("nobody knows the right answers about your sentences: choose a suite to ask all of its questions")
        scenes = scenes_of(str(self.source.value), self.count.value)
        total = sum(len(scene.world.items) for scene in scenes if scene.world)
        self.progress.max = 2 * total
        rows: list[list[dict[str, Any]]] = []
        for setup in (self.before_setup, self.setup):
            rows.append([])
            for row in self.session.ask_all(scenes, setup):
                rows[-1].append(row)
                self.progress.value = sum(map(len, rows))
                yield f"{len(rows[-1])} of {total} questions, {'before' if len(rows) == 1 else 'after'} the change"
        result, differing = paired(rows[1], rows[0])
        self.all.value = page.compared(result, [dict(row) for row in differing.to_dict("records")])
        yield ""

    def _show_lines(self) -> None:
        lines = [
            ("Command", command(self.scene, self.setup, self.count.value)),
            ("Python", python(self.scene, self.setup, self.question.value, self.session.consolidated(self.setup.model))),
        ]
        self.lines.value = page.code(*lines)
        self._show_line("")

    def _set(self, key: str, value: Any) -> None:
        setup = self.setup.changed(key, value)
        try:
            _ = setup.loaded
        except LabError:
            self.controls.show(_flat(self.setup))
            raise
        self._switch(setup)

    def _switch(self, setup: Setup) -> None:
        if setup == self.setup:
            return
        self.before_setup, self.setup = self.setup, setup
        self.controls.show(_flat(setup))
        self._show_sleep()
        if self.flip is not None:
            self.turns.start(self._answering())

    def _switch_preset(self, preset: str) -> None:
        self.before_setup, self.setup = self.setup, replace(self.setup, preset=preset, settings={})
        self._draw_controls()
        if self.flip is not None:
            self.turns.start(self._answering())

    def _switch_model(self, model: str) -> None:
        if reason := missing(load_spec(model)):
            self.model.value = self.setup.model
            self._show_line(reason, bad=True)
            return
        self._switch(replace(self.setup, model=model))

    def _load_suite(self, suite: str) -> None:
        self.flip, self.answer.value, self.all.value = None, "", ""
        self.sleep.forget_questions()
        self.scenes = [] if suite == OWN else scenes_of(suite, WORLDS)
        own = suite == OWN
        self.world.layout.display = "none" if own else ""
        self.world.options = [scene.name for scene in self.scenes]
        self.sentences.disabled = not own
        self._load_world(self.world.value) if self.scenes else self._show_line("")

    def _load_world(self, _: Any) -> None:
        scene = self.scene
        if scene.world is None:
            return
        self.sentences.value = "\n".join(observation.statement.text for observation in scene.observations)
        self.flip = None
        self.sleep.forget_questions()
        questions = [item.question for item in scene.world.items]
        self.question.options = questions
        self.question.value = questions[0]

    def _take_file(self) -> None:
        for file in self.file.value:
            self.source.value = OWN
            self.sentences.value = upload(file["name"], bytes(file["content"]))
        self._show_line(f"{len(self.scene.observations)} sentences; Teach tells them")

    def answer_now(self) -> "Answer":
        """Answer the question as it stands before this returns, as a notebook's cell wants it. LabError where that cannot be."""
        self.turns.finish(self._answering())
        if self.flip is None:
            raise LabError("the question is not answered; the panel says why")
        return self.flip.now

    def _on_turn(self, text: str, wrong: bool, ended: bool) -> None:
        self.sleep.lock(not ended)
        self.cancel.layout.display = "none" if ended else ""
        self.progress.layout.display = "" if self.progress.value and not ended else "none"
        if ended:
            self._show_line(text, wrong)
        elif text:
            self.status.value = page.line(text, busy=True)

    def _safely(self, do: Callable[..., None], *values: Any) -> None:
        try:
            do(*values)
        except Exception as error:
            self._show_line(in_a_line(error), bad=True)

    def close(self) -> None:
        """Let all stores go."""
        self.turns.cancel()
        self.session.close()
        self.widget.close()


def _flat(setup: Setup) -> dict[str, Any]:
    return setup.loaded.of_step("test")

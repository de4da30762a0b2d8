"""What the Ask panel works with: sentences or a suite's world, told to a memory; one setting changed; the answers before and after.

A setting that changes what is stored (`Preset.of_step("teach")`) tells all of it anew, to a store of its own; any other one asks the store
that is there. Nothing here draws, and torch is loaded when something is first told.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.files import COMMAND
from hippo_core.methods.base import Observation, Picture
from hippo_core.methods.presets import Preset, load_preset, preset_names
from hippo_core.results.scores import score_item
from hippo_core.store.trace import Statement, Trace
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds as draw_worlds
from hippo_core.suites.types import Item, Suite, World
from hippo_core.text import OWN_ANSWER_TOKENS

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.live.answer import Answer, TeachResult
    from hippo_core.live.memory import LiveMemory, OpenWorld
    from hippo_core.results.statistics.paired import Comparison
    from hippo_core.training.consolidation.lineage import Consolidated, Consolidation

SEED = 1337
OWN = "your sentences"


@dataclass(frozen=True)
class Setup:
    """What a question is asked with: a model, a preset, settings to replace, by dotted key, and whether anything is recalled."""

    model: str = "hippo-tiny"
    preset: str = "memory/hei_nw"
    settings: Mapping[str, Any] = field(default_factory=dict)
    recall: bool = True

    @property
    def loaded(self) -> Preset:
        """The preset with these settings."""
        return load_preset(self.preset, self.settings)

    def changed(self, key: str, value: Any) -> "Setup":
        """The same with one setting as it should be."""
        settings = {**self.settings, key: value}
        usual = load_preset(self.preset).of_step("test")
        return replace(self, settings={name: setting for name, setting in settings.items() if usual.get(name, ...) != setting})

    @property
    def stored(self) -> str:
        """What the store depends on: equal for two setups that can ask the same one."""
        preset = self.loaded
        return json.dumps([self.model, preset.path, preset.of_step("teach") if preset.taught else "plain"], sort_keys=True, default=str)


@dataclass(frozen=True)
class Scene:
    """What is told, and the questions about it, if they are known: a suite's world, or sentences of one's own."""

    name: str
    observations: tuple[Observation, ...]
    suite: Suite | None = None
    world: World | None = None
    other: "Scene | None" = None  # another world, for the control `shuffled`

    def item(self, question: str) -> Item | None:
        """The suite's own item of a question, where it is one of its world's."""
        return next((item for item in self.world.items if item.question == question), None) if self.world else None

    def gold(self, item: Item | None) -> tuple[str, ...]:
        """The numbers under which a question's right facts are told."""
        if self.world is None or item is None:
            return ()
        return tuple(str(number) for number, fact in enumerate(self.world.facts, start=1) if fact.id in item.gold_facts)


def own_sentences(text: str) -> Scene:
    """A line a sentence; empty lines are left out."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return Scene(OWN, tuple(Observation(Statement("", "", line, 0)) for line in lines))


def scenes_of(suite: str, count: int, profile: str = "default", split: Any = "test") -> list[Scene]:
    """The first worlds of a suite, with so many questions in all; each with the one before it for the control `shuffled`."""
    drawn = list(draw_worlds(suite, profile, count, SEED, split))
    scenes = [Scene(world.id, tuple(map(Observation.of, world.facts)), get_suite(suite), world) for world in drawn]
    return [replace(scene, other=scenes[number - 1]) for number, scene in enumerate(scenes)] if len(scenes) > 1 else scenes


@dataclass(frozen=True)
class SettingChange:
    """An answer, and the one before the last change. `entered`, `left`: numbers of traces that reach the model now, or did before."""

    question: str
    now: "Answer"
    before: "Answer | None" = None

    @property
    def entered(self) -> set[int]:
        return _shown(self.now) - _shown(self.before) if self.before else set()

    @property
    def left(self) -> set[int]:
        return _shown(self.before) - _shown(self.now)


def _shown(answer: "Answer | None") -> set[int]:
    return {trace.id for trace in answer.traces} if answer else set()


@dataclass(frozen=True)
class AnswerUplift:
    """What sleep brought for a question: the unchanged model's answers with the memory and without, and the consolidated one's without."""

    question: str
    memory: "Answer"
    before: "Answer"
    after: "Answer"
    expected: str = ""


class Session:
    """Stores that are taught, by scene and by what they depend on, in temporary folders; models stay loaded. A model sleeps, not a store:
    what it has learnt stays in it, whatever is told or switched then."""

    def __init__(self) -> None:
        self._memories: dict[tuple[str, str], LiveMemory] = {}
        self._opened: dict[tuple[Any, ...], OpenWorld] = {}
        self._models: dict[str, Any] = {}
        self._consolidations: dict[str, Consolidation] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="hippo-sleep-")
        self.decisions: list[TeachResult] = []

    def teach(self, scene: Scene, setup: Setup) -> Iterator[int]:
        """Teach a scene to the store that a setup asks, unless it was before: yields how many sentences are taught. Left halfway, nothing
        of it stays."""
        from hippo_core.live.memory import LiveMemory

        key = _stored(scene, setup)
        if key in self._memories:
            return
        memory = LiveMemory(self._models.get(setup.model, setup.model), setup.preset, setup.settings)
        self._models[setup.model] = memory.language_model
        decisions: list[TeachResult] = []
        try:
            for block in memory.tell(scene.observations):
                decisions += block
                yield len(decisions)
        except BaseException:
            memory.close()
            raise
        self._memories[key], self.decisions = memory, decisions

    def _taught(self, scene: Scene, setup: Setup) -> "LiveMemory":
        """The memory of a scene, which is taught first where it is not yet."""
        for _ in self.teach(scene, setup):
            pass
        return self._memories[_stored(scene, setup)]

    def loads(self, model: str) -> bool:
        """Whether a model is still to be loaded, which takes some seconds."""
        return getattr(self._models.get(model), "present", None) is None

    def ask(self, scene: Scene, setup: Setup, question: str, item: Item | None = None, asleep: bool = True) -> "Answer":
        """Answer a question about a scene, which is told first where it is not yet. `asleep` False: by the model as it was before sleep."""
        if not question.strip():
            raise LabError("type a question")
        self._taught(scene, setup)
        consolidation = self._consolidations.get(setup.model) if asleep else None
        consolidation = consolidation if consolidation and consolidation.fits(question) else None
        with consolidation.on() if consolidation else nullcontext():
            world = self._world(scene, setup, consolidation.version if consolidation else None)
            answer = world.ask(question, scene.suite.answer_budget if scene.suite else OWN_ANSWER_TOKENS, scene.gold(item), setup.recall)
        return replace(answer, consolidated=consolidation is not None)

    def _world(self, scene: Scene, setup: Setup, version: tuple[int, ...] | None = None) -> "OpenWorld":
        """A scene that is told, opened by the method. `version`: of what sleep has put into the model, which reads traces otherwise.
        LabError for a control that needs a suite's world."""
        from hippo_core.live.memory import OpenWorld

        preset, stored = setup.loaded, _stored(scene, setup)
        control = preset.settings.control
        if scene.world is None and control in ("oracle", "random"):
            raise LabError(f"control {control} needs to know the right facts: choose a suite's world, or control none or empty")
        if scene.other is None and control == "shuffled":
            raise LabError("control shuffled needs a second world: choose a suite's world")
        key = (*stored, json.dumps(preset.of_step("test"), sort_keys=True, default=str), version)
        if key not in self._opened:
            memory, others, decisions = self._memories[stored], list[Trace](), self.decisions
            method = preset.method(memory.language_model, preset.settings)
            method.warm_up()
            if scene.other and control == "shuffled":
                others = [replace(trace, world=scene.other.name) for trace in self._taught(scene.other, setup).traces()]
                self.decisions = decisions  # about the scene that is asked
            self._opened[key] = OpenWorld(method, memory.traces(), others)
        return self._opened[key]

    def sleep(self, scene: Scene, setup: Setup, update_rule: str, steps: int) -> Iterator[int]:
        """Rehearse a scene, told first where it is not yet, into the model; yields how many steps are done, from 0. Left before its end,
        the model is as it was."""
        from hippo_core.training.consolidation.lineage import Consolidation

        memory = self._taught(scene, setup)
        if setup.model not in self._consolidations:
            self._consolidations[setup.model] = Consolidation(memory.language_model, Path(self._folder.name) / setup.model)
        yield from self._consolidations[setup.model].learn(memory.traces(), update_rule, steps)
        self._drop_consolidated()

    def wake(self, model: str) -> None:
        """Take out of a model what sleep has put into it."""
        if model in self._consolidations:
            self._consolidations[model].remove()
        self._drop_consolidated()

    def _drop_consolidated(self) -> None:
        """Let go of what was opened with a model as an earlier sleep had made it."""
        self._opened = {key: world for key, world in self._opened.items() if key[-1] is None}

    def consolidated(self, model: str) -> "Consolidated | None":
        """What sleep has put into a model; None where there is nothing."""
        return self._consolidations[model].consolidated if model in self._consolidations else None

    def uplift(self, scene: Scene, setup: Setup, question: str) -> AnswerUplift:
        """What sleep brought for a question."""
        item = scene.item(question)
        on, off = (replace(setup, recall=recall) for recall in (True, False))
        memory, before = (self.ask(scene, variant, question, item, asleep=False) for variant in (on, off))
        return AnswerUplift(question, memory, before, self.ask(scene, off, question, item), item.answers[0] if item else "")

    def pictures(self, scene: Scene, setup: Setup, answer: "Answer") -> Sequence[Picture]:
        """What the method draws of how it came to its best trace."""
        opened = self._world(scene, setup)
        first = answer.recall.traces[0].id if answer.recall.traces else None
        best = next((trace for trace in opened.traces if trace.source == str(first)), None)
        return opened.method.pictures(answer.question, best, opened.traces)

    def ask_all(self, scenes: Sequence[Scene], setup: Setup) -> Iterator[dict[str, Any]]:
        """Every question of these scenes, in order: a row with its answer, score, and what was found."""
        for scene in scenes:
            assert scene.suite is not None and scene.world is not None
            for item in scene.world.items:
                answer = self.ask(scene, setup, item.question, item)
                score = score_item(scene.suite, scene.world, item, answer.text)["score"]
                has_gold = {str(trace.id) for trace in answer.traces} >= set(scene.gold(item)) if item.gold_facts else None
                about = {"item_id": item.id, "world": item.world, "rung": item.rung, "kind": item.kind, "question": item.question}
                yield about | {"answer": " | ".join(item.answers), "pred": answer.text, "score": score, "found": has_gold}

    def close(self) -> None:
        """Let all stores go."""
        for memory in self._memories.values():
            memory.close()
        for consolidation in self._consolidations.values():
            consolidation.remove()
        self._memories, self._opened, self._consolidations = {}, {}, {}
        self._folder.cleanup()


def paired(now: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> "tuple[Comparison, pd.DataFrame]":
    """How the answers after a change compare with those before it, item by item, and the items where they differ."""
    import pandas as pd

    from hippo_core.results.statistics.paired import compare

    a, b = pd.DataFrame(now), pd.DataFrame(before)
    both = a.merge(b[["item_id", "pred", "score", "found"]], on="item_id", suffixes=("", "_before"))
    differing: Any = both[both["score"] != both["score_before"]]
    return compare(a, b), differing


def command(scene: Scene, setup: Setup, n: int, profile: str = "default") -> str:
    """The command line that runs the same cell; of one's own sentences, and with the memory off, what to do first."""
    if not setup.recall:
        return "# with the memory off: the Python lines beside this do the same"
    if scene.suite is None:
        return "# sentences of your own: the Python lines beside this do the same"
    preset = setup.loaded
    words = [f"suite={scene.suite.name}", f"preset={setup.preset}", f"model={setup.model}", f"profile={profile}", f"n={n}", f"seed={SEED}"]
    if setup.settings:
        overrides = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in sorted(setup.settings.items())]
        words.append(f"overrides='[{', '.join(overrides)}]'")
    return f"{COMMAND} run {'memory' if preset.taught else 'answer'} {' '.join(words)}"


def python(scene: Scene, setup: Setup, question: str, slept: "Consolidated | None" = None) -> str:
    """The lines of Python that do the same. `slept`: a sleep on the scene that the model is to have had."""
    texts = "\n".join(f"    {observation.statement.text!r}," for observation in scene.observations)
    settings = f", settings={dict(setup.settings)!r}" if setup.settings else ""
    sleep = f"memory.sleep(consolidate={slept.way!r}, steps={slept.steps})\n" if slept else ""
    return (
        "from hippo_core import Memory\n\n"
        f"memory = Memory({setup.model!r}, {setup.preset!r}{settings})\n"
        f"memory.teach([\n{texts}\n])\n{sleep}"
        f"answer = memory.ask({question!r}{'' if setup.recall else ', recall=False'})\n"
        "print(answer, answer.why, sep='\\n')\n"
    )


def live_presets() -> list[str]:
    """The presets that can answer about what was told in another session, controls and ablations left out: these are settings here."""
    return [name for name in preset_names() if name.startswith(("memory/", "baselines/rag", "mine/"))]


def upload(name: str, content: bytes, most: int = 2_000_000) -> str:
    """The text of a file that was dropped; LabError for one that is no text, or too large."""
    if len(content) > most:
        raise LabError(
            f"{Path(name).name} has {len(content):,} bytes; expected at most {most:,}: cut it, or teach it with hippo_core.Memory"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LabError(f"{Path(name).name} is no UTF-8 text; save it as plain text, a sentence a line") from None


def _stored(scene: Scene, setup: Setup) -> tuple[str, str]:
    """What tells the store of a scene from others."""
    return f"{scene.name} {hash(scene.observations)}", setup.stored

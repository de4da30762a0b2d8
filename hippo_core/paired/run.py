"""Run a suite: worlds in random order, in each world its items and, for each item, the conditions in random order; a row an answer."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from hippo_core.files import LabError, unknown
from hippo_core.paired.answering import Answer, Answerer, LocalModel, Prompt, Reader
from hippo_core.paired.brought import Brought
from hippo_core.paired.conditions import CONDITIONS, MEMORY, OpenCondition, asked, open_condition
from hippo_core.paired.items import ASKING, Asking
from hippo_core.paired.memories import opener
from hippo_core.paired.scoring import SCORES, score
from hippo_core.paired.suite import Note, Suite

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

PROFILES, MODES = ("offline", "llm"), ("auto", "deterministic", "llm")
COLUMNS = (
    *("entry", "item", "world", "type", "tags", "condition", "repeat", "place", "success", *SCORES),
    *("tokens_in", "tokens_out", "tokens_cached", "recall_s", "answer_s", "question", "answer", "ranking", "error"),
)


@dataclass(frozen=True)
class Settings:
    """What a run is told besides its suite.

    Args:
        conditions: by name, those of conditions.py.
        memory: the memory under test: a preset, `package.module:NAME`, or `command:PROGRAM ARGUMENTS`.
        profile: offline (no model answers) or llm.
        answer_mode: who answers: auto (as the profile says), deterministic, llm.
        encoder: of presets that have one: minilm or own.
        repeats: how often each item is asked; random-memory draws anew each time.
        seed: of the order, and of what is drawn.
        timeout_s: of a program under test, for one message.
    """

    conditions: tuple[str, ...] = CONDITIONS
    memory: str = "memory/hei_nw"
    profile: str = "offline"
    answer_mode: str = "auto"
    encoder: str = "minilm"
    repeats: int = 1
    seed: int = 1337
    timeout_s: float = 60.0
    limit: int = 0  # items at most, 0: all

    def require(self) -> None:
        """LabError for a name that is none, or a condition that is named twice."""
        for name, value, legal in (("profile", self.profile, PROFILES), ("answer_mode", self.answer_mode, MODES)):
            if value not in legal:
                raise unknown(name, value, legal)
        for name in self.conditions:
            if name not in CONDITIONS:
                raise unknown("condition", name, CONDITIONS)
        if not self.conditions or len(set(self.conditions)) < len(self.conditions):
            raise LabError(f"conditions: expected different ones, at least one, got {list(self.conditions)}")
        if self.profile == "offline" and self.answer_mode == "llm":
            raise LabError("answer_mode llm needs profile llm; offline no model answers")

    @property
    def by_model(self) -> bool:
        """Whether a model answers."""
        return self.profile == "llm" and self.answer_mode != "deterministic"


def run(
    suite: Suite, settings: Settings, lm: "str | LanguageModel", answerer: Answerer | None = None, say: Callable[[str], None] = print
) -> list[dict[str, Any]]:
    """The rows of all repeats, in the order in which they were asked. `lm`: the model of the memories, and of the answers where a model
    answers and no `answerer` is given. LabError for settings that are none, and where an item runs commands."""
    settings.require()
    items = chosen(suite, settings.limit)
    answering = answerer or (LocalModel(lm) if settings.by_model and not isinstance(lm, str) else Reader())
    opened: dict[str, Callable[[Sequence[Note]], Any]] = {}

    def open_memory(name: str, notes: Sequence[Note]) -> Any:
        preset = settings.memory if name == MEMORY else name
        if name not in opened:
            opened[name] = opener(preset, lm, settings.encoder, settings.timeout_s)
        return opened[name](notes)

    rows: list[dict[str, Any]] = []
    for repeat in range(1, settings.repeats + 1):
        random = Random(f"{settings.seed}/{repeat}")
        worlds = sorted({item.world for item in items})
        random.shuffle(worlds)
        for number, world in enumerate(worlds, start=1):
            say(f"repeat {repeat} of {settings.repeats}, world {number} of {len(worlds)}: {world}")
            mine = [item for item in items if item.world == world]
            for row in _world(suite, settings, mine, repeat, random, open_memory, answering):
                rows.append({**row, "place": len(rows) + 1})
    return rows


def chosen(suite: Suite, limit: int = 0) -> list[Asking]:
    """The items that are asked; LabError for those that run commands."""
    if len(suite.asking) < len(suite.items):
        shell = next(item for item in suite.items if item.type not in ASKING)
        raise LabError(f"{suite.folder}: item {shell.id} is a {shell.type}, which runs commands; this run asks memories alone")
    items = list(suite.asking)
    if not limit or limit >= len(items):
        return items
    step = len(items) / limit  # spread over the file, so that a short run meets all types and worlds
    return [items[int(number * step)] for number in range(limit)]


def _world(
    suite: Suite, settings: Settings, items: Sequence[Asking], repeat: int, random: Random, open_memory: Callable, answering: Answerer
) -> Iterator[dict[str, Any]]:
    world, order = items[0].world, list(items)
    random.shuffle(order)
    with ExitStack() as held:
        conditions = []
        for name in settings.conditions:
            conditions.append(one := open_condition(name, suite, world, open_memory, settings.seed))
            held.callback(one.close)
        for item in order:
            random.shuffle(conditions)
            for condition in conditions:
                yield asked_once(item, condition, repeat, answering, suite.by_world[world])


def asked_once(item: Asking, condition: OpenCondition, repeat: int, answering: Answerer, notes: Sequence[Note]) -> dict[str, Any]:
    """The row of one item under one condition."""
    begin = time.perf_counter()
    brought = condition.bring(item, repeat)
    recall_s = brought.seconds or time.perf_counter() - begin
    answer = None if item.type == "retrieval" or brought.error else _answer(item, brought, answering)
    found = score(item, brought, answer, notes)
    spent = answer or Answer("")
    return {
        "entry": f"{item.id}/{repeat}",
        "item": item.id,
        "world": item.world,
        "type": item.type,
        "tags": ";".join(item.tags),
        "condition": condition.name,
        "repeat": repeat,
        "success": None if found.success is None else float(found.success),
        **found.scores,
        "tokens_in": spent.tokens_in + brought.tokens_in,
        "tokens_out": spent.tokens_out + brought.tokens_out,
        "tokens_cached": spent.tokens_cached + brought.tokens_cached,
        "recall_s": recall_s,
        "answer_s": spent.seconds,
        "question": asked(item),
        "answer": spent.text,
        "ranking": " ".join((brought.ranking or ())[: item.top_k]),
        "error": brought.error or spent.error,
    }


def _answer(item: Asking, brought: Brought, answering: Answerer) -> Answer:
    if brought.answer is not None:
        return Answer(brought.answer)
    return answering.answer(Prompt(asked(item), brought.shown, brought.best, brought.confidence, briefing=item.type == "resume_quality"))


def described(settings: Settings) -> Mapping[str, Any]:
    """The settings as plain values."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}

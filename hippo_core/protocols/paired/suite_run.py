"""Run a suite: worlds in random order, in each world its items and, for each item, the conditions in random order; a row an answer."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.protocols.paired.answerers import answerer_of
from hippo_core.protocols.paired.answering import Answerer, ItemAnswer, Prompt
from hippo_core.protocols.paired.conditions import MEMORY, OpenCondition, asked, open_condition
from hippo_core.protocols.paired.items import ASKING, Asking
from hippo_core.protocols.paired.memories import opener
from hippo_core.protocols.paired.retrieval import Brought
from hippo_core.protocols.paired.scoring import SCORES, score
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import PairedSuite, SuiteNote

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

COLUMNS = (
    *("entry", "item", "world", "type", "tags", "condition", "repeat", "place", "success", *SCORES),
    *("tokens_in", "tokens_out", "tokens_cached", "recall_s", "answer_s", "question", "answer", "read", "ranking", "error"),
)


def run(
    suite: PairedSuite,
    settings: RunSettings,
    lm: "str | LanguageModel",
    answerer: Answerer | None = None,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """The rows of all repeats, in the order in which they were asked. `lm`: the model of the memories, and of the answers where a model
    answers and no `answerer` is given. LabError for settings that are none, and where an item runs commands."""
    settings.require()
    items = chosen(suite, settings.limit)
    answering = answerer or answerer_of(settings, lm)
    opened: dict[str, Callable[[Sequence[SuiteNote]], Any]] = {}

    def open_memory(name: str, notes: Sequence[SuiteNote]) -> Any:
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


def chosen(suite: PairedSuite, limit: int = 0) -> list[Asking]:
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
    suite: PairedSuite,
    settings: RunSettings,
    items: Sequence[Asking],
    repeat: int,
    random: Random,
    open_memory: Callable,
    answering: Answerer,
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


def asked_once(item: Asking, condition: OpenCondition, repeat: int, answering: Answerer, notes: Sequence[SuiteNote]) -> dict[str, Any]:
    """The row of one item under one condition."""
    begin = time.perf_counter()
    brought = condition.bring(item, repeat)
    recall_s = brought.seconds or time.perf_counter() - begin
    answer = None if item.type == "retrieval" or brought.error else _answer(item, brought, answering)
    found = score(item, brought, answer, notes)
    spent = answer or ItemAnswer("")
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
        "tokens_in": _sum(spent.tokens_in, brought.tokens_in),
        "tokens_out": _sum(spent.tokens_out, brought.tokens_out),
        "tokens_cached": _sum(spent.tokens_cached, brought.tokens_cached),
        "recall_s": recall_s,
        "answer_s": spent.seconds,
        "question": asked(item),
        "answer": spent.text,
        "read": json.dumps(spent.read, ensure_ascii=False),
        "ranking": " ".join((brought.ranking or ())[: item.top_k]),
        "error": brought.error or spent.error,
    }


def _sum(stated: int | None, more: int) -> int | None:
    return None if stated is None else stated + more


def _answer(item: Asking, brought: Brought, answering: Answerer) -> ItemAnswer:
    if brought.answer is not None:
        return ItemAnswer(brought.answer)
    return answering.answer(Prompt(asked(item), brought.shown, brought.best, brought.confidence, briefing=item.type == "resume_quality"))

"""Run a suite: worlds in random order, in each world its items and, for each item, the conditions in random order; a row an answer.

The record of a cell gets the run itself (`run.json`, `results.jsonl`), which `hippo paired` reads.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from random import Random
from typing import TYPE_CHECKING, Any

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.protocols.paired.answering import Answerer, ItemAnswer, Prompt, answerer_of
from hippo_core.protocols.paired.conditions import COLUMNS, OpenCondition, asked, open_condition, row_of
from hippo_core.protocols.paired.items import Asking
from hippo_core.protocols.paired.memories import memory_opener
from hippo_core.protocols.paired.run_files import write_into
from hippo_core.protocols.paired.scoring import score
from hippo_core.protocols.paired.settings import RunSettings, settings_of
from hippo_core.protocols.paired.suite import PairedSuite, SuiteNote, read_suite

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


def evaluate(cell: Any, log: Callable[[str], None] = print) -> pd.DataFrame:
    """The rows of all conditions, in the order in which they were asked."""
    parameters = cell.parameters
    suite = read_suite(parameters.suite)
    settings = settings_of(parameters, suite.manifest.default_repeats)
    rows = run(suite, settings, cell.language_model, log=log)
    write_into(cell.record, suite, settings, rows, {"model": parameters.model})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def run(
    suite: PairedSuite,
    settings: RunSettings,
    lm: "str | LanguageModel",
    log: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """The rows of all repeats, in the order in which they were asked. `lm`: the model of the memories, and of the answers where a model
    answers. LabError for settings that are none, and where an item runs commands."""
    settings.require()
    items = chosen(suite, settings.limit)
    answering = answerer_of(settings, lm)
    open_memory = memory_opener(settings, lm)
    rows: list[dict[str, Any]] = []
    for repeat in range(1, settings.repeats + 1):
        random = Random(f"{settings.seed}/{repeat}")
        worlds = sorted({item.world for item in items})
        random.shuffle(worlds)
        for number, world in enumerate(worlds, start=1):
            log(f"repeat {repeat} of {settings.repeats}, world {number} of {len(worlds)}: {world}")
            order = [item for item in items if item.world == world]
            random.shuffle(order)
            with ExitStack() as stack:
                conditions = []
                for name in settings.conditions:
                    opened = open_condition(name, suite, world, open_memory, settings.seed)
                    conditions.append(stack.enter_context(closing(opened)))
                for item in order:
                    random.shuffle(conditions)
                    for condition in conditions:
                        row = asked_once(item, condition, repeat, answering, suite.by_world[world])
                        rows.append({**row, "place": len(rows) + 1})
    return rows


def chosen(suite: PairedSuite, limit: int = 0) -> list[Asking]:
    """The items that are asked; LabError for those that run commands."""
    if suite.shell:
        raise LabError(
            f"{suite.folder}: item {suite.shell[0].id} is a {suite.shell[0].type}, which runs commands; this run asks memories alone"
        )
    items = list(suite.asking)
    if not limit or limit >= len(items):
        return items
    step = len(items) / limit  # spread over the file, so that a short run meets all types and worlds
    return [items[int(number * step)] for number in range(limit)]


def asked_once(item: Asking, condition: OpenCondition, repeat: int, answering: Answerer, notes: Sequence[SuiteNote]) -> dict[str, Any]:
    """The row of one item under one condition."""
    begin = time.perf_counter()
    retrieved = condition.retrieve(item, repeat)
    recall_s = retrieved.seconds or time.perf_counter() - begin
    if item.type == "retrieval" or retrieved.error:
        answer = None
    elif retrieved.answer is not None:
        answer = ItemAnswer(retrieved.answer)
    else:
        briefing = item.type == "resume_quality"
        answer = answering.answer(Prompt(asked(item), retrieved.shown, retrieved.best, retrieved.confidence, briefing))
    result = score(item, retrieved, answer, notes)
    usage = answer or ItemAnswer("")
    values = {
        "success": None if result.success is None else float(result.success),
        **result.scores,
        "tokens_in": _sum(usage.tokens_in, retrieved.tokens_in),
        "tokens_out": _sum(usage.tokens_out, retrieved.tokens_out),
        "tokens_cached": _sum(usage.tokens_cached, retrieved.tokens_cached),
        "recall_s": recall_s,
        "answer_s": usage.seconds,
        "question": asked(item),
        "answer": usage.text,
        "read": json.dumps(usage.read, ensure_ascii=False),
        "ranking": " ".join((retrieved.ranking or ())[: item.top_k]),
        "error": retrieved.error or usage.error,
    }
    return row_of(item, condition.name, repeat, values)


def _sum(stated: int | None, more: int) -> int | None:
    return None if stated is None else stated + more

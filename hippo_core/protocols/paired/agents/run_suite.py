"""Run a suite's agent items under several conditions, in random order; a row an item, with the columns of a paired run. A whole run asks
the items that ask memories, then these."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.containment import best
from hippo_core.protocols.paired.agents.evidence import Recall
from hippo_core.protocols.paired.agents.run import run_item
from hippo_core.protocols.paired.agents.tasks import NOT_JUDGED, ItemResult
from hippo_core.protocols.paired.conditions import COLUMNS, MEMORY, OpenCondition, open_condition
from hippo_core.protocols.paired.items import SHELL, Retrieval, Shell
from hippo_core.protocols.paired.memories import check_memory, memory_opener
from hippo_core.protocols.paired.run import run
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import PairedSuite

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

QUERY_TOP_K = 5  # notes that a query of an agent gets at most
NONE = "no-memory"
CONDITIONS = (NONE, "lexical", MEMORY)  # unless others are named


@dataclass(frozen=True)
class Permissions:
    """What the caller allows: commands at all (`shell`), only a look (`dry_run`), variables of the environment for agents (`passed`); and
    which agent stands in for the suite's own ("": none)."""

    shell: bool = False
    dry_run: bool = False
    passed: tuple[str, ...] = ()
    agent: str = ""


def run_tasks(
    suite: PairedSuite,
    settings: RunSettings,
    lm: "str | LanguageModel",
    out: Path,
    permissions: Permissions,
    log: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """The rows of all agent items, repeats and conditions, in the order in which they ran; artifacts go below `out`. LabError where
    commands are not allowed or cannot be contained."""
    settings.require()
    items = [item for item in suite.items if item.type in SHELL][: settings.limit or None]
    if not items:
        raise LabError(f"{suite.folder} has no item that runs commands ({', '.join(SHELL)})")
    if not permissions.dry_run:
        _require_notes(suite, items, settings.conditions)
        log(f"contained by: {best()}")
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        open_memory = memory_opener(settings, lm)

        @cache
        def opened(condition: str, world: str) -> OpenCondition:
            return stack.enter_context(closing(open_condition(condition, suite, world, open_memory, settings.seed)))

        for repeat in range(1, settings.repeats + 1):
            random = Random(f"{settings.seed}/{repeat}")
            pairs = [(item, condition) for item in items for condition in settings.conditions]
            random.shuffle(pairs)
            for item, condition in pairs:
                silent = permissions.dry_run or condition == NONE
                recall = None if silent else _recall(opened(condition, item.world), item.world, repeat)
                result = run_item(
                    item,  # pyright: ignore[reportArgumentType]
                    condition,
                    suite.folder,
                    out,
                    recall,
                    allow_shell=permissions.shell,
                    dry_run=permissions.dry_run,
                    repeat=repeat,
                    agent=permissions.agent,
                    passed=permissions.passed,
                )
                log(f"{item.id}, {condition}, repeat {repeat}: {'skipped' if result.skipped else _outcome(result)}")
                rows.append({**row(item, result), "place": len(rows) + 1})  # pyright: ignore[reportArgumentType]
    if faulty := [row for row in rows if row["answer"].startswith(NOT_JUDGED)]:
        log(f"{len(faulty)} of {len(rows)} runs of items could not be judged: {', '.join(sorted({row['item'] for row in faulty}))}")
    return rows


def _recall(condition: OpenCondition, world: str, repeat: int) -> Recall:
    """What a question brings under an open condition."""

    def ask(question: str) -> Sequence[Mapping[str, Any]]:
        item = Retrieval(id="query", world=world, type="retrieval", question=question, top_k=QUERY_TOP_K)
        retrieved = condition.retrieve(item, repeat)
        if retrieved.error:
            raise LabError(retrieved.error)
        return [{"id": passage.note, "text": passage.text} for passage in retrieved.shown]

    return ask


def run_all_items(
    suite: PairedSuite,
    settings: RunSettings,
    lm: "str | LanguageModel",
    tasks: Path,
    allowed: Permissions,
    log: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """The rows of all items, in the order in which they were asked. `tasks`: where agents' folders go. LabError where an item runs commands
    and nobody allowed it, and for a memory that is none. A dry run checks the items that run commands, and has no rows."""
    check_memory(settings.memory, settings.encoder)
    if suite.runs_commands and not (allowed.shell or allowed.dry_run):
        raise LabError(f"{suite.folder} has items that run commands; read them and its scripts, then say --allow-shell (docs/agents.md)")
    rows: list[dict[str, Any]] = []
    if suite.asking and not allowed.dry_run:
        rows += run(replace(suite, items=tuple(suite.asking)), settings, lm, log=log)
    if suite.runs_commands:
        done = run_tasks(suite, settings, lm, tasks, allowed, log)
        rows += [] if allowed.dry_run else [{**row, "place": len(rows) + row["place"]} for row in done]
    return rows


def recorded_permissions(allowed: Permissions) -> dict[str, Any]:
    """What a run records of its permissions: the agent, and the names of variables that it was passed."""
    return {"agent": allowed.agent, "passed": list(allowed.passed)}


def permissions(about: Mapping[str, Any], shell: bool) -> Permissions:
    """The permissions of a run that is made again."""
    agents = about.get("agents") or {}
    return Permissions(shell, passed=tuple(agents.get("passed", ())), agent=agents.get("agent", ""))


def _require_notes(suite: PairedSuite, items: Sequence[Any], conditions: Sequence[str]) -> None:
    """LabError, before anything is run, for an item whose memory would be taught nothing."""
    without = [item for item in items if item.world not in suite.by_world]
    if without and set(conditions) != {NONE}:
        what = f"item {without[0].id} is of world {without[0].world!r}, which has no notes"
        raise LabError(f"{suite.folder}: {what}, so only {NONE} runs it; add notes")


def row(item: Shell, result: ItemResult) -> dict[str, Any]:
    """A result as a row; what it does not have is None."""
    usage = result.usage
    return dict.fromkeys(COLUMNS) | {
        "entry": f"{item.id}/{result.repeat}",
        "item": item.id,
        "world": item.world,
        "type": item.type,
        "tags": ";".join(item.tags),
        "condition": result.condition,
        "repeat": result.repeat,
        "success": None if result.skipped else float(result.success),
        "tokens_in": usage.input if usage else None,
        "tokens_out": usage.output if usage else None,
        "tokens_cached": usage.cached if usage else None,
        "answer_s": result.duration_ms / 1e3,
        "question": getattr(item, "prompt", "") or item.id,
        "answer": "skipped" if result.skipped else _outcome(result),
        "ranking": "",
        "error": "; ".join(result.notes) if not result.skipped else "",
    }


def _outcome(result: ItemResult) -> str:
    return "success" if result.success else f"{NOT_JUDGED if result.fault else 'failed:'} {'; '.join(result.notes)}"

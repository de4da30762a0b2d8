"""A whole run: the items that ask memories, then those that run commands."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.run_suite import Permissions, run_tasks
from hippo_core.protocols.paired.memories import check_memory
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import PairedSuite
from hippo_core.protocols.paired.suite_run import run

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


def run_whole(
    suite: PairedSuite,
    settings: RunSettings,
    lm: "str | LanguageModel",
    tasks: Path,
    allowed: Permissions,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """The rows of all items, in the order in which they were asked. `tasks`: where agents' folders go. LabError where an item runs commands
    and nobody allowed it, and for a memory that is none. A dry run checks the items that run commands, and has no rows."""
    check_memory(settings.memory, settings.encoder)
    if suite.runs_commands and not (allowed.shell or allowed.dry_run):
        raise LabError(f"{suite.folder} has items that run commands; read them and its scripts, then say --allow-shell (docs/agents.md)")
    rows: list[dict[str, Any]] = []
    if suite.asking and not allowed.dry_run:
        rows += run(replace(suite, items=tuple(suite.asking)), settings, lm, say=say)
    if suite.runs_commands:
        done = run_tasks(suite, settings, lm, tasks, allowed, say)
        rows += [] if allowed.dry_run else [{**row, "place": len(rows) + row["place"]} for row in done]
    return rows


def told(allowed: Permissions) -> dict[str, Any]:
    """What a run records of its permissions: the agent, and the names of variables that it was passed."""
    return {"agent": allowed.agent, "passed": list(allowed.passed)}


def permissions(about: Mapping[str, Any], shell: bool) -> Permissions:
    """The permissions of a run that is made again."""
    agents = about.get("agents") or {}
    return Permissions(shell, passed=tuple(agents.get("passed", ())), agent=agents.get("agent", ""))

"""Run one agent item under one condition: a fresh workspace, its steps, what each left behind, and whether it succeeded and why not.

An item succeeds where in each step the agent ended with the expected status, every score command with 0, every assertion holds, every
required question was asked of the memory (counted by the harness, evidence.py), and the token usage could be read where it is required. A
run without memory fails where files pretend that there was one. Nothing is run without `allow_shell`, nor in a dry run.

    OUT/<item>-<condition>-r<repeat>/summary.json
                                     workspace/        as it was left
                                     setup-<n>.stdout, ...
                                     steps/<NN>-<id>/  prompt.md, agent.stdout, agent.stderr, agent.json, score-<n>.*, queries.json,
                                                       step.json
"""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, new_folder, write_json
from hippo_core.protocols.paired.agents.containment import Way, best
from hippo_core.protocols.paired.agents.evidence import Recall
from hippo_core.protocols.paired.agents.result import ItemResult
from hippo_core.protocols.paired.agents.sandbox import TaskSandbox
from hippo_core.protocols.paired.agents.steps import run_step
from hippo_core.protocols.paired.agents.tasks import AgentTask, task_of
from hippo_core.protocols.paired.agents.workspace import check_fixture
from hippo_core.protocols.paired.agents.wrappers import wrapped
from hippo_core.protocols.paired.items import Shell


def run_item(
    item: Shell,
    condition: str,
    suite: Path,
    out: Path,
    recall: Recall | None = None,
    *,
    allow_shell: bool = False,
    dry_run: bool = False,
    repeat: int = 0,
    agent: str = "",
    passed: Sequence[str] = (),
    way: Way | None = None,
) -> ItemResult:
    """Run an item of the suite folder `suite`; artifacts go below `out`.

    Args:
        recall: the memory under test, a question -> what it finds; None: a run without memory.
        agent: "claude", "codex" or "gemini", in place of the item's own agent command.
        passed: names of environment variables that the caller lets agents have; a task gets those of them that it lists.
        way: of containment; the machine's best unless given.
    Raises:
        LabError: where shell commands are not allowed, or the machine grants no containment. What goes wrong with the item is its
            result.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", condition):
        raise LabError(f"the condition {condition!r} becomes a folder's name; expected letters, digits, dots, dashes")
    if dry_run:
        return ItemResult(item.id, item.type, condition, repeat, False, {}, 0.0, _unfit(item, suite) or ("dry run",), skipped=True)
    if not allow_shell:
        raise LabError(f"item {item.id} runs commands of its suite; read them, then say --allow-shell")
    way = way or best()
    began = time.monotonic()
    with new_folder(out / f"{item.id}-{condition}-r{repeat}") as folder:
        steps: list[ItemResult] = []
        faults: list[str] = []
        try:
            task = wrapped(task_of(item), agent)
            with TaskSandbox.open(
                suite, item.fixture, folder / "workspace", way, item.limits, task.network, _environment(task, passed)
            ) as place:
                faults = place.faults
                _set_up(task, place, folder, condition)
                for number, step in enumerate(task.steps, 1):  # also after one that fails, so that two conditions do the same work
                    steps.append(run_step(task, step, place, folder / "steps" / f"{number:02d}-{step.id}", recall, condition, repeat))
        except LabError as error:
            faults.append(in_a_line(error))
        except Exception as error:  # whatever an agent brings about is its item's fault, and the run goes on
            faults.append(f"{type(error).__name__}: {in_a_line(error)}")
        faults = [ascii(fault)[1:-1] if not fault.isprintable() else fault for fault in faults]
        notes = [*faults, *(f"{step.item_id}: {note}" for step in steps for note in step.notes)]
        result = replace(_whole(item, condition, repeat, way, steps, notes, (time.monotonic() - began) * 1000), fault=bool(faults))
        write_json(folder / "summary.json", asdict(result))
    return result


def _set_up(task: AgentTask, place: TaskSandbox, folder: Path, condition: str) -> None:
    for number, line in enumerate(task.setup_commands, 1):
        ran = place.run(line, task.item.timeout_s, folder / f"setup-{number}", {"condition": condition, "step": "setup"})
        if ran.status != 0:
            raise LabError(f"setup command {number}: {ran.why}")


def _whole(
    item: Shell, condition: str, repeat: int, way: Way, steps: Sequence[ItemResult], notes: Sequence[str], took: float
) -> ItemResult:
    scores = {name: sum(step.scores[name] for step in steps) for name in (steps[0].scores if steps else ())}
    scores |= {"steps_passed": sum(step.success for step in steps), "steps": len(steps)}
    usages = [step.usage for step in steps if step.usage]
    usage = sum(usages[1:], start=usages[0]) if usages else None
    return ItemResult(item.id, item.type, condition, repeat, not notes, scores, took, tuple(notes), False, usage, way, tuple(steps))


def _unfit(item: Shell, suite: Path) -> tuple[str, ...]:
    try:
        task_of(item)
        if item.fixture:
            check_fixture(suite / item.fixture)
    except LabError as error:
        return (str(error),)
    return ()


def _environment(task: AgentTask, passed: Sequence[str]) -> dict[str, str]:
    missing = [name for name in task.environment if name not in passed or len(os.environ.get(name, "")) < 8]
    if missing:
        raise LabError(f"the agent needs {', '.join(missing)}: set it (8 characters or more) and pass it (--pass-env NAME)")
    return {name: os.environ[name] for name in task.environment}

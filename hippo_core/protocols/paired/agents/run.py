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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, new_folder, write_json, write_text
from hippo_core.protocols.paired.agents import assertions
from hippo_core.protocols.paired.agents.containment import ContainmentMode, best, owner
from hippo_core.protocols.paired.agents.evidence import MemorySocket, Recall
from hippo_core.protocols.paired.agents.sandbox import TaskSandbox
from hippo_core.protocols.paired.agents.tasks import AgentTask, ItemResult, task_of
from hippo_core.protocols.paired.agents.usage import parse
from hippo_core.protocols.paired.agents.workspace import check_fixture, names, shown
from hippo_core.protocols.paired.agents.wrappers import wrapped
from hippo_core.protocols.paired.items import AgentStep, Shell

CLAIMS = ("memory-evidence", "memory_evidence", ".memory")  # names of files that say "I asked a memory"


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
    mode: ContainmentMode | None = None,
) -> ItemResult:
    """Run an item of the suite folder `suite`; artifacts go below `out`.

    Args:
        recall: the memory under test, a question -> what it finds; None: a run without memory.
        agent: "claude", "codex" or "gemini", in place of the item's own agent command.
        passed: names of environment variables that the caller lets agents have; a task gets those of them that it lists.
        mode: of containment; the machine's best unless given.
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
    mode = mode or best()
    began = time.monotonic()
    with new_folder(out / f"{item.id}-{condition}-r{repeat}") as folder:
        steps: list[ItemResult] = []
        faults: list[str] = []
        try:
            task = wrapped(task_of(item), agent)
            with TaskSandbox.open(
                suite, item.fixture, folder / "workspace", mode, item.limits, task.network, _environment(task, passed)
            ) as sandbox:
                faults = sandbox.faults
                for number, line in enumerate(task.setup_commands, 1):
                    ran = sandbox.run(line, task.item.timeout_s, folder / f"setup-{number}", {"condition": condition, "step": "setup"})
                    if ran.status != 0:
                        raise LabError(f"setup command {number}: {ran.why}")
                for number, step in enumerate(task.steps, 1):  # also after one that fails, so that two conditions do the same work
                    steps.append(run_step(task, step, sandbox, folder / "steps" / f"{number:02d}-{step.id}", recall, condition, repeat))
        except LabError as error:
            faults.append(in_a_line(error))
        except Exception as error:  # whatever an agent causes is its item's fault, and the run goes on
            faults.append(f"{type(error).__name__}: {in_a_line(error)}")
        faults = [ascii(fault)[1:-1] if not fault.isprintable() else fault for fault in faults]
        notes = [*faults, *(f"{step.item_id}: {note}" for step in steps for note in step.notes)]
        scores = {name: sum(step.scores[name] for step in steps) for name in (steps[0].scores if steps else ())}
        scores |= {"steps_passed": sum(step.success for step in steps), "steps": len(steps)}
        usages = [step.usage for step in steps if step.usage]
        usage = sum(usages[1:], start=usages[0]) if usages else None
        took = (time.monotonic() - began) * 1000
        outcome = ItemResult(item.id, item.type, condition, repeat, not notes, scores, took, tuple(notes), False, usage, mode, tuple(steps))
        result = replace(outcome, fault=bool(faults))
        write_json(folder / "summary.json", asdict(result))
    return result


def _unfit(item: Shell, suite: Path) -> tuple[str, ...]:
    try:
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


def run_step(
    task: AgentTask, step: AgentStep, sandbox: TaskSandbox, folder: Path, recall: Recall | None, condition: str, repeat: int
) -> ItemResult:
    """Run a step in the task's workspace; artifacts go to `folder`. LabError where a command cannot be contained."""
    began = time.monotonic()
    values, seconds = {"condition": condition, "step": step.id}, task.seconds(step)
    questions = {f"q{number}": text for number, text in enumerate(step.memory_questions, 1)} if recall else {}
    text = prompt(step.prompt, questions if recall else None)
    write_text(folder / "prompt.md", text)
    with ExitStack() as stack:
        extra, asked, serve = {"task": sandbox.add("task", {"prompt.md": text, **task.wrapper})}, [], None
        if recall:
            memory = stack.enter_context(MemorySocket(recall, questions, owner(sandbox.mode, sandbox.uid)))
            extra["memory"], asked, serve = memory.folder, memory.asked, memory.serve
        ran = sandbox.run(task.command, seconds, folder / "agent", values, extra, text.encode(), agent=True, meanwhile=serve)
    verified = {call.id for call in asked if call.id and call.results}
    queries = [replace(call, question=sandbox.redacted(call.question), error=sandbox.redacted(call.error)) for call in asked]
    write_json(folder / "queries.json", [asdict(call) for call in queries])
    scored = [sandbox.run(line, seconds, folder / f"score-{number}", values) for number, line in enumerate(step.score_commands, 1)]
    wrong = list(assertions.failures(step, sandbox.workspace))
    usage = parse(ran.stdout, task.usage) if task.usage else None
    notes = [f"agent: {ran.why or 'exit status 0'}"] if ran.status != task.status else []
    notes += [f"score command {number}: {command.why}" for number, command in enumerate(scored, 1) if command.status != 0]
    notes += wrong
    if missing := [name for name in questions if name not in verified]:
        notes.append(f"memory not asked, or it found nothing: {', '.join(missing)}")
    if not recall:
        notes += _few([f"{shown(path)} claims a memory that there is none of" for path in names(sandbox.workspace) if _claims(path)])
    if task.usage_required and not usage:
        notes.append(f"no token usage in the agent's output (format {task.usage})")
    notes += _few([f"the value of {name} was left in {shown(path)}" for name, path in sandbox.leaks()])
    notes += _few([f"the memory was asked for the value of {name}" for call in asked for name in sandbox.named(call.question)])
    notes = [sandbox.redacted(note) for note in notes]
    scores = {
        "score_commands_passed": sum(command.status == 0 for command in scored),
        "score_commands": len(scored),
        "assertions_passed": assertions.count(step) - len(wrong),
        "assertions": assertions.count(step),
        "memory_queries_required": len(questions),
        "memory_queries_verified": len(verified),
        "memory_queries": sum(bool(call.question) for call in asked),
    }
    took = (time.monotonic() - began) * 1000
    result = ItemResult(step.id, task.item.type, condition, repeat, not notes, scores, took, tuple(notes), False, usage, sandbox.mode)
    write_json(folder / "step.json", asdict(result))
    return result


def prompt(text: str, questions: Mapping[str, str] | None) -> str:
    """What the agent reads: the task, and how to ask the memory; `questions` None: that there is none."""
    if questions is None:
        return f"{text}\n\nThere is no memory of earlier work. Work with what is in the folder.\n"
    lines = [f"- {name}: {question}" for name, question in questions.items()]
    usage = "There is a memory of earlier work. `$MEMORY_QUERY your question` asks it and prints JSON."
    must = ["Before you change anything ask each of these, as in `$MEMORY_QUERY --id q1`:", *lines] if lines else []
    return "\n".join([text, "", usage, *must, ""])


def _few(notes: list[str], most: int = 20) -> list[str]:
    """The first of many notes of a kind, and how many more there are."""
    return notes[:most] + ([f"{len(notes) - most} more of this kind"] if len(notes) > most else [])


def _claims(path: str) -> bool:
    return any(part.casefold().startswith(CLAIMS) for part in Path(path).parts)

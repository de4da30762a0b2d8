"""Run a suite, and its agent items under several conditions, in random order; a row an item, with the columns of a paired run.

One agent item under one condition: a fresh workspace, its steps, what each left behind, and whether it succeeded and why not.

An item succeeds where in each step the agent ended with the expected status, every score command with 0, every assertion holds, every
required question was asked of the memory (counted by the harness, evidence.py), and the token usage could be read where it is required. A
run without memory fails where files pretend that there was one. Nothing is run without `allow_shell`.

    OUT/<item>-<condition>-r<repeat>/summary.json
                                     workspace/        as it was left
                                     setup-<n>.stdout, ...
                                     steps/<NN>-<id>/  prompt.md, agent.stdout, agent.stderr, agent.json, final.md (the agent's
                                                       last message), score-<n>.*, queries.json, step.json
"""

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError, shortened
from hippo_core.files import in_a_line, new_folder, write_json, write_text
from hippo_core.protocols.paired.agents.containment import ContainmentMode, best, owner
from hippo_core.protocols.paired.agents.evidence import MemorySocket, Recall
from hippo_core.protocols.paired.agents.pages import lacking
from hippo_core.protocols.paired.agents.sandbox import TaskSandbox
from hippo_core.protocols.paired.agents.tasks import NOT_JUDGED, AgentTask, ItemResult, final_message, parse, task_of
from hippo_core.protocols.paired.agents.workspace import check_fixture, names, read, shown
from hippo_core.protocols.paired.conditions import MEMORY, OpenCondition, open_condition, row_of
from hippo_core.protocols.paired.items import AgentStep, Built, Content, Retrieval, Shell
from hippo_core.protocols.paired.memories import check_memory, memory_opener
from hippo_core.protocols.paired.run import run
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import PairedSuite

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

CLAIMS = ("memory-evidence", "memory_evidence", ".memory")  # names of files that say "I asked a memory"
QUERY_TOP_K = 5  # notes that a query of an agent gets at most
NONE = "no-memory"
CONDITIONS = (NONE, "lexical", MEMORY)  # unless others are named


@dataclass(frozen=True)
class Permissions:
    """What the caller allows: commands at all (`shell`), only a look (`dry_run`), variables of the environment for agents (`passed`); and
    which agent stands in for the suite's own ("": none), in which sandbox of its own ("": none)."""

    shell: bool = False
    dry_run: bool = False
    passed: tuple[str, ...] = ()
    agent: str = ""
    sandbox: str = ""


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
    if allowed.dry_run:
        for item in suite.shell:
            task_of(item, allowed.agent, allowed.sandbox)
            if item.fixture:
                check_fixture(suite.folder / item.fixture)
            log(f"{item.id}: nothing is wrong with it; a dry run does not run it")
        return []
    if suite.shell and not allowed.shell:
        raise LabError(f"{suite.folder} has items that run commands; read them and its scripts, then say --allow-shell (docs/agents.md)")
    rows = run(replace(suite, items=suite.asking), settings, lm, log=log) if suite.asking else []
    if suite.shell:
        rows += [{**row, "place": len(rows) + row["place"]} for row in run_tasks(suite, settings, lm, tasks, allowed, log)]
    return rows


def run_tasks(
    suite: PairedSuite,
    settings: RunSettings,
    lm: "str | LanguageModel",
    out: Path,
    allowed: Permissions,
    log: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """The rows of all agent items, repeats and conditions, in the order in which they ran; artifacts go below `out`. LabError where
    commands are not allowed or cannot be contained."""
    settings.require()
    items = suite.shell[: settings.limit or None]
    without = [item for item in items if item.world not in suite.by_world]
    if without and set(settings.conditions) != {NONE}:  # before anything is run
        what = f"item {without[0].id} is of world {without[0].world!r}, which has no notes"
        raise LabError(f"{suite.folder}: {what}, so only {NONE} runs it; add notes")
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
                recall = None if condition == NONE else _recall(opened(condition, item.world), item.world, repeat)
                permitted: Any = {
                    "allow_shell": allowed.shell,
                    "agent": allowed.agent,
                    "sandbox": allowed.sandbox,
                    "passed": allowed.passed,
                }
                result = run_item(item, condition, suite.folder, out, recall, repeat=repeat, **permitted)
                rows.append({**row(item, result), "place": len(rows) + 1})
                log(f"{item.id}, {condition}, repeat {repeat}: {rows[-1]['answer']}")
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


def row(item: Shell, result: ItemResult) -> dict[str, Any]:
    """A result as a row, with shares of what passed, of all that there was; what it does not have is None."""
    usage, notes = result.usage, "; ".join(result.notes)
    scores, passed = result.scores, ("steps_passed", "score_commands_passed", "assertions_passed")
    shares = {name: scores[name] / whole if (whole := scores.get(name.removesuffix("_passed"))) else None for name in passed}
    verified, required = scores.get("memory_queries_verified", 0), scores.get("memory_queries_required")
    values = {
        "success": float(result.success),
        **shares,
        "memory_queries_verified": verified / required if required else None,
        "memory_queries": scores.get("memory_queries"),
        "tokens_in": usage.input if usage else None,
        "tokens_out": usage.output if usage else None,
        "tokens_cached": usage.cached if usage else None,
        "answer_s": result.duration_ms / 1e3,
        "question": getattr(item, "prompt", "") or item.id,
        "answer": "success" if result.success else f"{NOT_JUDGED if result.fault else 'failed:'} {notes}",
        "ranking": "",
        "error": notes,
    }
    return row_of(item, result.condition, result.repeat, values)


def run_item(
    item: Shell,
    condition: str,
    suite: Path,
    out: Path,
    recall: Recall | None = None,
    *,
    allow_shell: bool = False,
    repeat: int = 0,
    agent: str = "",
    sandbox: str = "",
    passed: Sequence[str] = (),
    mode: ContainmentMode | None = None,
) -> ItemResult:
    """Run an item of the suite folder `suite`; artifacts go below `out`.

    Args:
        recall: the memory under test, a question -> what it finds; None: a run without memory.
        agent: "claude", "codex" or "gemini", in place of the item's own agent command; `sandbox`: its own (tasks.SANDBOXES).
        passed: names of environment variables that the caller lets agents have; a task gets those of them that it lists.
        mode: of containment; the machine's best unless given.
    Raises:
        LabError: where shell commands are not allowed, or the machine grants no containment. What goes wrong with the item is its
            result.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", condition):
        raise LabError(f"the condition {condition!r} becomes a folder's name; expected letters, digits, dots, dashes")
    if not allow_shell:
        raise LabError(f"item {item.id} runs commands of its suite; read them, then say --allow-shell")
    mode = mode or best()
    began = time.monotonic()
    with new_folder(out / f"{item.id}-{condition}-r{repeat}") as folder:
        steps: list[ItemResult] = []
        faults: list[str] = []
        try:
            task = task_of(item, agent, sandbox)
            with TaskSandbox.open(suite, task, folder / "workspace", mode, _secrets(task, passed)) as opened:
                faults = opened.faults
                for number, line in enumerate(getattr(item, "setup_commands", ()), 1):
                    ran = opened.run(line, item.timeout_s, folder / f"setup-{number}", {"condition": condition, "step": "setup"})
                    if ran.status != 0:
                        raise LabError(f"setup command {number}: {ran.why}")
                for number, step in enumerate(item.steps, 1):  # also after one that fails, so that two conditions do the same work
                    steps.append(run_step(task, step, opened, folder / "steps" / f"{number:02d}-{step.id}", recall, condition, repeat))
        except LabError as error:
            faults.append(in_a_line(error))
        except Exception as error:  # whatever an agent causes is its item's fault, and the run goes on
            faults.append(f"{type(error).__name__}: {in_a_line(error)}")
        faults = [ascii(fault)[1:-1] if not fault.isprintable() else fault for fault in faults]
        notes = (*faults, *(f"{step.item_id}: {note}" for step in steps for note in step.notes))
        scores = {name: sum(step.scores[name] for step in steps) for name in (steps[0].scores if steps else ())}
        scores |= {"steps_passed": sum(step.success for step in steps), "steps": len(steps)}
        usages = [step.usage for step in steps if step.usage]
        usage = sum(usages[1:], start=usages[0]) if usages else None
        took = (time.monotonic() - began) * 1000
        success, fault = not notes, bool(faults)
        result = ItemResult(item.id, item.type, condition, repeat, success, scores, took, notes, usage, mode, tuple(steps), fault)
        write_json(folder / "summary.json", asdict(result))
    return result


def _secrets(task: AgentTask, passed: Sequence[str]) -> dict[str, str]:
    missing = [name for name in task.environment if name not in passed or len(os.environ.get(name, "")) < 8]
    if missing:
        raise LabError(f"the agent needs {', '.join(missing)}: set it (8 characters or more) and pass it (--pass-env NAME)")
    return {name: os.environ[name] for name in task.environment}


def run_step(
    task: AgentTask, step: AgentStep, sandbox: TaskSandbox, folder: Path, recall: Recall | None, condition: str, repeat: int
) -> ItemResult:
    """Run a step in the task's workspace; artifacts go to `folder`. LabError where a command cannot be contained."""
    began = time.monotonic()
    values, seconds = {"condition": condition, "step": step.id}, step.timeout_s or task.item.timeout_s
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
    asserted = checked(step, sandbox.workspace)
    usage = parse(ran.stdout, task.usage) if task.usage else None
    if task.usage and (message := final_message(ran.stdout, task.usage)):
        write_text(folder / "final.md", message)
    notes = [f"agent: {ran.why or 'exit status 0'}"] if ran.status != task.status else []
    notes += [f"score command {number}: {command.why}" for number, command in enumerate(scored, 1) if command.status != 0]
    notes += filter(None, asserted)
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
        "assertions_passed": asserted.count(""),
        "assertions": len(asserted),
        "memory_queries_required": len(questions),
        "memory_queries_verified": len(verified),
        "memory_queries": sum(bool(call.question) for call in asked),
    }
    took = (time.monotonic() - began) * 1000
    result = ItemResult(step.id, task.item.type, condition, repeat, not notes, scores, took, tuple(notes), usage, sandbox.mode)
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


def checked(step: Built, workspace: Path) -> list[str]:
    """For each assertion why it does not hold; "" where it does."""
    there = set(names(workspace))
    reasons = []
    for path in step.required_files:
        try:
            read(workspace, path)
            reasons.append("")
        except LabError as error:
            reasons.append(f"required: {error}")
    for path in step.forbidden_files:
        reasons.append(f"forbidden file {path} is there" if path.rstrip("/") in there else "")
    reasons += [_why_not(assertion, workspace) for assertion in step.required_content]
    return [*reasons, *(lacking(element, workspace) for element in step.required_elements)]


def _why_not(assertion: Content, workspace: Path) -> str:
    try:
        text = read(workspace, assertion.file).decode("utf-8", errors="surrogateescape")
        if assertion.contains is not None:
            return "" if assertion.contains in text else f"{assertion.file} does not contain {assertion.contains!r}"
        actual = text.strip() if assertion.json_path is None else at(json.loads(text), assertion.json_path)
        wanted = assertion.equals.strip() if assertion.json_path is None else assertion.equals
    except LabError as error:
        return str(error)
    except (ValueError, RecursionError):
        return f"{assertion.file} is no JSON"
    except (KeyError, IndexError):
        return f"{assertion.file} has nothing at {assertion.json_path}"
    location = assertion.file + (f" at {assertion.json_path}" if assertion.json_path else "")
    same = type(actual) is type(wanted) and actual == wanted
    return "" if same else f"{location} is {shortened(ascii(actual), 80)}, not {shortened(ascii(wanted), 80)}"


def at(value: Any, path: str) -> Any:
    """What stands at a path of keys and positions, joined by dots; KeyError or IndexError where nothing does."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdecimal():
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value[part]
        else:
            raise KeyError(part)
    return value

"""One step of an agent task: its prompt, the agent, the score commands, and all that is wrong afterwards."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

from hippo_core.files import write_json, write_text
from hippo_core.protocols.paired.agents import assertions
from hippo_core.protocols.paired.agents.containment import owner
from hippo_core.protocols.paired.agents.evidence import MemorySocket, Recall
from hippo_core.protocols.paired.agents.result import ItemResult
from hippo_core.protocols.paired.agents.sandbox import TaskSandbox
from hippo_core.protocols.paired.agents.tasks import AgentTask
from hippo_core.protocols.paired.agents.usage import parse
from hippo_core.protocols.paired.agents.workspace import names, shown
from hippo_core.protocols.paired.items import AgentStep

CLAIMS = ("memory-evidence", "memory_evidence", ".memory")  # names of files that say "I asked a memory"


def run_step(
    task: AgentTask, step: AgentStep, place: TaskSandbox, folder: Path, recall: Recall | None, condition: str, repeat: int
) -> ItemResult:
    """Run a step in the task's workspace; artifacts go to `folder`. LabError where a command cannot be contained."""
    began = time.monotonic()
    values, seconds = {"condition": condition, "step": step.id}, task.seconds(step)
    questions = {f"q{number}": text for number, text in enumerate(step.memory_questions, 1)} if recall else {}
    text = prompt(step.prompt, questions if recall else None)
    write_text(folder / "prompt.md", text)
    with ExitStack() as stack:
        extra, asked, serve = {"task": place.add("task", {"prompt.md": text, **task.wrapper})}, [], None
        if recall:
            memory = stack.enter_context(MemorySocket(recall, questions, owner(place.way, place.uid)))
            extra["memory"], asked, serve = memory.folder, memory.asked, memory.serve
        ran = place.run(task.command, seconds, folder / "agent", values, extra, text.encode(), agent=True, meanwhile=serve)
    verified = {one.id for one in asked if one.id and one.results}
    told = [replace(one, question=place.told(one.question), error=place.told(one.error)) for one in asked]
    write_json(folder / "queries.json", [asdict(one) for one in told])
    scored = [place.run(line, seconds, folder / f"score-{number}", values) for number, line in enumerate(step.score_commands, 1)]
    wrong = list(assertions.failures(step, place.workspace))
    usage = parse(ran.stdout, task.usage) if task.usage else None
    notes = [f"agent: {ran.why or 'exit status 0'}"] if ran.status != task.status else []
    notes += [f"score command {number}: {one.why}" for number, one in enumerate(scored, 1) if one.status != 0]
    notes += wrong
    if missing := [name for name in questions if name not in verified]:
        notes.append(f"memory not asked, or it found nothing: {', '.join(missing)}")
    if not recall:
        notes += _few([f"{shown(path)} claims a memory that there is none of" for path in names(place.workspace) if _claims(path)])
    if task.usage_required and not usage:
        notes.append(f"no token usage in the agent's output (format {task.usage})")
    notes += _few([f"the value of {name} was left in {shown(path)}" for name, path in place.leaks()])
    notes += _few([f"the memory was asked for the value of {name}" for one in asked for name in place.named(one.question)])
    notes = [place.told(note) for note in notes]
    scores = {
        "score_commands_passed": sum(one.status == 0 for one in scored),
        "score_commands": len(scored),
        "assertions_passed": assertions.count(step) - len(wrong),
        "assertions": assertions.count(step),
        "memory_queries_required": len(questions),
        "memory_queries_verified": len(verified),
        "memory_queries": sum(bool(one.question) for one in asked),
    }
    took = (time.monotonic() - began) * 1000
    result = ItemResult(step.id, task.item.type, condition, repeat, not notes, scores, took, tuple(notes), False, usage, place.way)
    write_json(folder / "step.json", asdict(result))
    return result


def prompt(text: str, questions: Mapping[str, str] | None) -> str:
    """What the agent reads: the task, and how to ask the memory; `questions` None: that there is none."""
    if questions is None:
        return f"{text}\n\nThere is no memory of earlier work. Work with what is in the folder.\n"
    lines = [f"- {name}: {question}" for name, question in questions.items()]
    how = "There is a memory of earlier work. `$MEMORY_QUERY your question` asks it and prints JSON."
    must = ["Before you change anything ask each of these, as in `$MEMORY_QUERY --id q1`:", *lines] if lines else []
    return "\n".join([text, "", how, *must, ""])


def _few(notes: list[str], most: int = 20) -> list[str]:
    """The first of many notes of a kind, and how many more there are."""
    return notes[:most] + ([f"{len(notes) - most} more of this kind"] if len(notes) > most else [])


def _claims(path: str) -> bool:
    return any(part.casefold().startswith(CLAIMS) for part in Path(path).parts)

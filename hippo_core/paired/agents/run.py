"""Run one agent task under one condition: a fresh workspace, its steps, what each left behind, and whether it succeeded and why not.

An item succeeds where, in each step, the agent ended with the expected status, every score command with 0, every assertion holds, every
required question was asked of the memory (counted by the harness, evidence.py), and the token usage could be read where it is asked for. A
run without memory fails where files pretend that there was one. Nothing is run without `allow_shell`, nor in a dry run.

    OUT/<item>-<condition>-r<repeat>/summary.json
                                     workspace/
                                     setup/            what setup commands wrote
                                     steps/<NN>-<id>/  prompt.md, agent.stdout, agent.stderr, score-<n>.stdout, ..., queries.json, step.json
"""

import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hippo_core.files import LabError, new_folder, write_bytes, write_json, write_text
from hippo_core.paired.agents import assertions
from hippo_core.paired.agents.capture import Captured
from hippo_core.paired.agents.containment import Containment, Way, best, free_uid, owner
from hippo_core.paired.agents.evidence import MemorySocket, Recall
from hippo_core.paired.agents.tasks import Step, Task
from hippo_core.paired.agents.usage import Usage, parse
from hippo_core.paired.agents.workspace import check_fixture, fresh_copy, names, read, shown

CLAIMS = ("memory-evidence", ".memory", "memory_evidence")  # names of files that say "I asked a memory"


@dataclass(frozen=True)
class ItemResult:
    """What became of an item, or of a step of it. `notes` say why it failed; empty where it succeeded."""

    item_id: str
    eval_type: str
    condition: str
    repeat: int
    success: bool
    scores: Mapping[str, float]
    duration_ms: float
    notes: tuple[str, ...]
    skipped: bool = False
    usage: Usage | None = None
    containment: Way | None = None
    sub_results: tuple["ItemResult", ...] = ()


def run_item(
    task: Task,
    condition: str,
    suite: Path,
    out: Path,
    recall: Recall | None = None,
    *,
    allow_shell: bool = False,
    dry_run: bool = False,
    repeat: int = 0,
    passed: Sequence[str] = (),
    way: Way | None = None,
) -> ItemResult:
    """Run a task of the suite folder `suite`; artifacts go below `out`.

    Args:
        recall: the memory under test, a question -> what it finds; None: a run without memory.
        passed: names of environment variables that the caller lets agents have; a task gets those of them that it lists.
        way: of containment; the machine's best unless given.
    Raises:
        LabError: where shell commands are not allowed, or the machine grants no containment. What goes wrong with the item is its result.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", condition):
        raise LabError(f"the condition {condition!r} names a folder; expected letters, digits, dots, dashes")
    if dry_run:
        return ItemResult(task.id, task.eval_type, condition, repeat, False, {}, 0.0, _unfit(task, suite) or ("dry run",), skipped=True)
    if not allow_shell:
        raise LabError(f"item {task.id} runs commands of its suite; read them, then say --allow-shell")
    way = way or best()
    began = time.monotonic()
    with new_folder(out / f"{task.id}-{condition}-r{repeat}") as folder:
        try:
            steps = _Run(task, condition, suite, folder, recall, repeat, way, _environment(task, passed)).steps()
            notes = tuple(f"{step.item_id}: {note}" for step in steps for note in step.notes)
        except LabError as error:
            steps, notes = (), (str(error),)
        result = _whole(task, condition, repeat, way, steps, notes, (time.monotonic() - began) * 1000)
        write_json(folder / "summary.json", asdict(result))
    return result


def _whole(
    task: Task, condition: str, repeat: int, way: Way, steps: tuple[ItemResult, ...], notes: tuple[str, ...], duration: float
) -> ItemResult:
    scores = {name: sum(step.scores[name] for step in steps) for name in (steps[0].scores if steps else ())}
    usages = [step.usage for step in steps if step.usage]
    usage = sum(usages[1:], start=usages[0]) if usages else None
    success = not notes and len(steps) == len(task.steps)
    scores |= {"steps_passed": sum(step.success for step in steps), "steps": len(task.steps)}
    return ItemResult(task.id, task.eval_type, condition, repeat, success, scores, duration, notes, False, usage, way, steps)


def _unfit(task: Task, suite: Path) -> tuple[str, ...]:
    try:
        for name in filter(None, (task.fixture, task.scripts, task.score_scripts)):
            check_fixture(suite / name)
    except LabError as error:
        return (str(error),)
    return ()


def _environment(task: Task, passed: Sequence[str]) -> dict[str, str]:
    missing = [name for name in task.environment if name not in passed or name not in os.environ]
    if missing:
        raise LabError(f"item {task.id} needs {', '.join(missing)}; set and pass them (--pass-env NAME), or leave the item out")
    return {name: os.environ[name] for name in task.environment}


@dataclass
class _Run:
    """One task under way."""

    task: Task
    condition: str
    suite: Path
    folder: Path
    recall: Recall | None
    repeat: int
    way: Way
    environment: dict[str, str]

    def steps(self) -> tuple[ItemResult, ...]:
        """All steps, also after one that fails, so that two conditions do the same work; the workspace is kept whatever happens."""
        with tempfile.TemporaryDirectory(prefix="hippo-task.") as place:
            self.place, self.uid = Path(place), free_uid()
            self.place.chmod(0o711)
            self.workspace = self.place / "workspace"
            if self.task.fixture:
                fresh_copy(self.suite, self.task.fixture, self.workspace)
            else:
                self.workspace.mkdir()
            self.visible = {name: self._brought(name, path) for name, path in (("scripts", self.task.scripts),) if path}
            if self.task.score_scripts:
                self.score_visible = {**self.visible, "score_scripts": self._brought("score_scripts", self.task.score_scripts)}
            else:
                self.score_visible = self.visible
            try:
                return self._in_order()
            finally:
                with suppress(OSError, shutil.Error):  # folders that the agent closed to us, where we are no root
                    shutil.copytree(self.workspace, self.folder / "workspace", symlinks=True, copy_function=_copy_plain)

    def _brought(self, name: str, path: str) -> Path:
        fresh_copy(self.suite, path, self.place / name)
        return self.place / name

    def _in_order(self) -> tuple[ItemResult, ...]:
        for number, command in enumerate(self.task.setup_commands, 1):
            ran = self._run(command, self.score_visible, b"", self.task.steps[0], self.folder / "setup", f"setup-{number}", {})
            if ran.status != 0:
                raise LabError(f"setup command {number}: {ran.why}")
        return tuple(self._step(step, self.folder / "steps" / f"{number:02d}-{step.id}") for number, step in enumerate(self.task.steps, 1))

    def _step(self, step: Step, folder: Path) -> ItemResult:
        began, notes = time.monotonic(), []
        questions = {f"q{number}": text for number, text in enumerate(step.memory_questions, 1)}
        with ExitStack() as stack:
            memory = None
            visible, variables = dict(self.visible), {"MEMORY_CONDITION": self.condition}
            if self.recall:
                memory = stack.enter_context(MemorySocket(self.recall, questions, owner(self.way, self.uid)))
                visible["memory"] = memory.folder
            text = prompt(step.prompt, questions if memory else None)
            write_text(folder / "prompt.md", text)
            given = self.place / "task"
            shutil.rmtree(given, ignore_errors=True)
            given.mkdir()
            given.chmod(0o755)
            (given / "prompt.md").write_text(text, encoding="utf-8")
            visible["task"] = given
            ran = self._run(self.task.agent_command, visible, text.encode(), step, folder, "agent", variables, agent=True)
            if memory:
                write_json(folder / "queries.json", [asdict(one) for one in memory.asked])
        if ran.status != self.task.expected_exit_code:
            notes.append(f"agent: {ran.why or 'exit status 0'}")
        scored = []
        for number, command in enumerate(step.score_commands, 1):
            scored.append(self._run(command, self.score_visible, b"", step, folder, f"score-{number}", {}))
        notes += [f"score command {number}: {one.why}" for number, one in enumerate(scored, 1) if one.status != 0]
        wrong = list(assertions.failures(step, self.workspace))
        notes += wrong
        verified = memory.verified if memory else set()
        if memory and (missing := [name for name in questions if name not in verified]):
            notes.append(f"memory not asked, or it found nothing: {', '.join(missing)}")
        if not memory:
            notes += [f"{shown(path)} claims a memory that there is none of" for path in names(self.workspace) if _claims(path)]
        usage = parse(ran.stdout, self.task.token_usage) if self.task.token_usage else None
        if self.task.token_usage and not usage:
            notes.append(f"no token usage in the agent's output (format {self.task.token_usage})")
        notes += [f"the value of {name} was left in {shown(path)}" for name, path in self._leaks()]
        scores = {
            "score_commands_passed": sum(one.status == 0 for one in scored),
            "score_commands": len(scored),
            "assertions_passed": assertions.count(step) - len(wrong),
            "assertions": assertions.count(step),
            "memory_queries_required": len(questions) if memory else 0,
            "memory_queries_verified": len(verified),
            "memory_queries": len(memory.asked) if memory else 0,
        }
        duration = (time.monotonic() - began) * 1000
        result = ItemResult(
            step.id, self.task.eval_type, self.condition, self.repeat, not notes, scores, duration, tuple(notes), False, usage, self.way
        )
        write_json(folder / "step.json", asdict(result))
        return result

    def _run(
        self,
        command: str,
        visible: Mapping[str, Path],
        stdin: bytes,
        step: Step,
        folder: Path,
        name: str,
        variables: Mapping[str, str],
        agent: bool = False,
    ) -> Captured:
        """Run one shell line contained, and keep what it wrote beside how it ended."""
        with Containment.open(self.workspace, self.way, self.task.limits, visible, self.task.network, self.uid) as box:
            values = {
                "workspace": box.directory,
                "python": box.python,
                "condition": self.condition,
                "step": step.id,
                **{key: box.path(key) for key in ("scripts", "score_scripts") if key in visible},
            }
            around = dict(variables)
            if "task" in visible:
                values["prompt_file"] = box.path("task") + "/prompt.md"
            if "memory" in visible:
                around["MEMORY_QUERY"] = f"{box.python} {box.path('memory')}/query"
            around |= self.environment if agent else {}
            ran = box.run(["/bin/sh", "-c", filled(command, values)], stdin, around, step.timeout)
        ran = redacted(ran, self.environment)
        write_bytes(folder / f"{name}.stdout", ran.stdout)
        write_bytes(folder / f"{name}.stderr", ran.stderr)
        about = {key: value for key, value in asdict(ran).items() if key not in ("stdout", "stderr")}
        write_json(folder / f"{name}.json", {"command": command, **about})
        return ran

    def _leaks(self) -> list[tuple[str, str]]:
        if not self.environment:
            return []
        held = []
        for path in names(self.workspace):
            try:
                content = read(self.workspace, path)
            except LabError:
                continue
            held += [(name, path) for name, value in self.environment.items() if len(value) > 7 and value.encode() in content]
        return held


def prompt(text: str, questions: Mapping[str, str] | None) -> str:
    """What the agent reads: the task, and how to ask the memory; `questions` None: that there is none."""
    if questions is None:
        return f"{text}\n\nThere is no memory of earlier work. Work with what is in the folder.\n"
    lines = [f"- {name}: {question}" for name, question in questions.items()]
    how = "There is a memory of earlier work. `$MEMORY_QUERY your question` asks it and prints JSON."
    must = ["Before you change anything ask each of these, as in `$MEMORY_QUERY --id q1`:", *lines] if lines else []
    return "\n".join([text, "", how, *must, ""])


def filled(command: str, values: Mapping[str, str]) -> str:
    """A shell line with its {names} replaced, quoted for the shell; LabError where a folder that it names is not there."""
    for name in ("scripts", "score_scripts", "prompt_file"):
        if f"{{{name}}}" in command and name not in values:
            raise LabError(f"a command names {{{name}}}, which it does not see: {command}")
    for name, value in values.items():
        command = command.replace(f"{{{name}}}", shlex.quote(value))
    return command


def redacted(ran: Captured, secrets: Mapping[str, str]) -> Captured:
    """What a command wrote, with the values of passed variables replaced by their names."""
    out, err = ran.stdout, ran.stderr
    for name, value in secrets.items():
        if value:
            out, err = (text.replace(value.encode(), f"[{name}]".encode()) for text in (out, err))
    return Captured(**{**vars(ran), "stdout": out, "stderr": err})


def _claims(path: str) -> bool:
    return any(part.casefold().startswith(CLAIMS) for part in Path(path).parts)


def _copy_plain(source: str, target: str) -> None:
    """Copy a plain file; pipes and sockets that an agent left are not kept."""
    if os.path.isfile(source):
        shutil.copyfile(source, target, follow_symlinks=False)

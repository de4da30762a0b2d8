"""A small suite folder, tasks of it, a memory of four notes, and processes looked for by their user."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hippo_core.protocols.paired.agents.containment import Containment, ContainmentMode, grants
from hippo_core.protocols.paired.agents.run import run_item
from hippo_core.protocols.paired.agents.tasks import ItemResult
from hippo_core.protocols.paired.items import AgentBuildTask, Limits, Shell

SMOKE = Path(__file__).resolve().parents[4] / "data" / "paired" / "agents-smoke"
MODES = [mode for mode, why_not in grants().items() if not why_not]


@pytest.fixture(params=MODES or [pytest.param(None, marks=pytest.mark.skip(reason="no containment here"))])
def mode(request: pytest.FixtureRequest) -> ContainmentMode:
    return request.param


@pytest.fixture
def box(mode: ContainmentMode) -> Iterator[Containment]:
    with Containment.open(mode=mode, limits=Limits(processes=40, file=8, resident=300, output=0.01)) as opened:
        yield opened


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    (folder / "fixture").mkdir(parents=True)
    (folder / "fixture" / "a.txt").write_text("first")
    return folder


def closest(notes: Sequence[Mapping[str, Any]], question: str) -> list[Mapping[str, Any]]:
    """Notes by how many words they share with a question."""

    def words(text: str) -> set[str]:
        return set("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())

    return sorted(notes, key=lambda note: -len(words(question) & words(note["text"])))


def recall(question: str) -> Sequence[Mapping[str, Any]]:
    """The two notes of the smoke suite that share most words with a question."""
    return closest([json.loads(line) for line in (SMOKE / "notes.jsonl").read_text().splitlines()], question)[:2]


@pytest.fixture
def run(suite: Path, tmp_path: Path) -> Callable[..., ItemResult]:
    """Run a one-step task whose agent is a shell line, best containment."""

    def _run(command: str, condition: str = "full-memory", memory: Any = recall, passed: Sequence[str] = (), **fields: Any) -> ItemResult:
        return run_item(task(command, **fields), condition, suite, tmp_path / "out", memory, allow_shell=True, passed=passed)

    return _run


def task(command: str, **fields: Any) -> Shell:
    limits = {"processes": 40, "file": 8, "output": 0.01}
    plain = {"id": "one", "type": "agent_build_task", "agent_command": command, "fixture": "fixture", "prompt": "Do it.", "timeout_s": 20.0}
    return AgentBuildTask.model_validate(plain | {"limits": limits} | fields)


def alive(uid: int) -> list[str]:
    """The processes of a user, after a moment for the kernel."""
    lines: list[str] = []
    for _ in range(20):
        lines = subprocess.run(["ps", "-o", "pid=,args=", "-U", str(uid)], capture_output=True, text=True).stdout.splitlines()
        if not lines:
            break
        time.sleep(0.05)
    return lines


class Notebook:
    """A memory of one's own: the notes that share most words with a question."""

    def __init__(self, notes: Sequence[Mapping[str, Any]]) -> None:
        self.notes = notes

    def recall(self, question: str, k: int) -> list[str]:
        return [note["id"] for note in closest(self.notes, question)[:k]]

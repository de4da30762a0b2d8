"""A run asks every item under every condition, each in a store of its own; what is altered in a note is altered in the answers."""

import math
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired import memories as under_test
from hippo_core.protocols.paired.agents.run import Permissions, run_all_items
from hippo_core.protocols.paired.conditions import CONDITIONS, open_condition
from hippo_core.protocols.paired.items import Retrieval
from hippo_core.protocols.paired.program import Program
from hippo_core.protocols.paired.run import run
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import SuiteNote, read_suite
from tests.protocols.paired import memories, suites

FAST = ("no-memory", "lexical", "full-memory", "full-context", "random-memory", "oracle-memory", "human-note")
OWN = "tests.protocols.paired.memories:Shared"


def rows_of(folder, **changes):
    settings = RunSettings(**{"conditions": FAST, "memory": OWN, "encoder": "own", **changes})
    return pd.DataFrame(run(read_suite(folder), settings, "hippo-tiny", log=lambda line: None))


def success(rows):
    return rows.groupby(["condition", "type"])["success"].mean()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return rows_of(suites.write(tmp_path_factory.mktemp("s")), repeats=2)


def test_conditions_take_turns(rows):
    first = rows.sort_values("place").groupby(["repeat", "item"], sort=False)["condition"].first()
    assert first.nunique() == len(FAST)
    again = rows.sort_values("place").groupby("repeat")["item"].apply(list)
    assert again[1] != again[2]


def test_the_controls_bound_what_a_memory_can_do(rows):
    shares = success(rows)
    for condition, retrieval, grounded in (
        ("no-memory", 0, 0),
        ("random-memory", 0, 0),
        ("oracle-memory", 1, 1),
        ("lexical", 1, 1),
        ("full-memory", 1, 1),
    ):
        assert (shares[condition]["retrieval"], shares[condition]["grounded_answer"]) == (retrieval, grounded)
    for condition in ("full-context", "human-note"):
        assert pd.isna(shares[condition]["retrieval"]) and shares[condition]["grounded_answer"] == 1


def test_an_altered_note_alters_the_answers(tmp_path):
    rows = rows_of(suites.write(tmp_path / "s", altered="a nail in the hall"))
    answers = rows[(rows["type"] == "grounded_answer") & ~rows["condition"].isin(["no-memory", "random-memory"])]
    assert answers["answer"].str.contains("a nail").all() and not answers["success"].any()
    assert success(rows)["oracle-memory"]["retrieval"] == 1


def test_a_condition_opens_stores_of_its_own_and_leaks_nothing(tmp_path, monkeypatch):
    """Each condition and world is told the notes of that world and no others, in a folder that nobody else has."""
    worlds, folders = [], []
    real = under_test.PresetUnderTest.__init__

    def spy(self, lm, preset, settings, notes):
        real(self, lm, preset, settings, notes)
        folders.append(self._memory.folder)
        worlds.append({note.world for note in notes})
        assert len(self._memory) == len(notes)

    monkeypatch.setattr(under_test.PresetUnderTest, "__init__", spy)
    rows_of(suites.write(tmp_path / "s", worlds=suites.WORDS[:2]), conditions=("lexical", "semantic"))
    assert len(folders) == len(set(folders)) == 4
    assert sorted(map(sorted, worlds)) == [[word] for word in sorted(2 * suites.WORDS[:2])]
    assert not [folder for folder in folders if folder.exists()]


def program(tmp_path, mode, *more):
    script = tmp_path / "memory.py"
    script.write_text(memories.PROGRAM)
    return under_test.COMMAND + " ".join([sys.executable, str(script), mode, *map(str, more)])


def test_a_program_is_taught_and_asked(tmp_path):
    folder = suites.write(tmp_path / "s", worlds=suites.WORDS[:2])
    rows = rows_of(folder, conditions=("full-memory",), memory=program(tmp_path, "good"))
    assert rows["success"].eq(1).all() and rows["tokens_cached"].eq(3).all()


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ("garbage", "the reply to recall 1"),
        ("version", "the reply to recall 1: schema_version: Input should be 1"),
        ("dies", "it ended before the reply to recall 1; its last words: no more memory"),
        ("Raises", "RuntimeError: the index is gone"),
        ("Invents", "recalled 'n77', which is no id"),
        ("Breaks", "ValueError: no index"),
        ("Numbers", "TypeError: 'int' object"),
    ],
)
def test_a_broken_memory_fails_its_items_in_a_line(tmp_path, memory, says):
    folder = suites.write(tmp_path / "s", worlds=suites.WORDS[:1])
    memory = program(tmp_path, memory) if memory.islower() else f"tests.protocols.paired.memories:{memory}"
    rows = rows_of(folder, conditions=("full-memory", "lexical"), memory=memory)
    broken = rows["condition"] == "full-memory"
    assert rows[broken]["error"].str.contains(says, regex=False).all() and not rows[broken]["success"].any()
    assert rows[~broken]["success"].all()


def test_a_program_that_hangs_is_killed_with_all_that_it_started(tmp_path):
    folder, pid = suites.write(tmp_path / "s", worlds=suites.WORDS[:1]), tmp_path / "pid"
    rows = rows_of(folder, conditions=("full-memory",), memory=program(tmp_path, "hangs", pid), timeout_s=1.0)
    assert rows["error"].str.contains("did not come within 1 s").all()
    child = Path(f"/proc/{pid.read_text()}/stat")
    deadline = time.monotonic() + 5
    while child.exists() and child.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.exists() or child.read_text().split()[2] == "Z"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("os:system", "expected a class with recall(question, k), got builtin_function_or_method"),
        ("subprocess:Popen", "expected a class with recall(question, k), got the class Popen"),
        ("tests.protocols.paired.memories:PROGRAM", "expected a class with recall(question, k), got str"),
        ("nowhere:IT", "there is no module"),
        ("math:nothing", "has no 'nothing'"),
        ("memory/nothing", "unknown preset"),
        ("foreign_memory:Mine", "its module cannot be imported: ZeroDivisionError"),
    ],
)
def test_what_is_no_memory_is_refused_and_never_called(tmp_path, monkeypatch, name, says):
    """Where a run is tried dry as well, which imports nothing."""
    (tmp_path / "foreign_memory.py").write_text("from pathlib import Path\nPath('ran').touch()\n1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    suite = read_suite(suites.write(tmp_path / "s", worlds=suites.WORDS[:1]))
    dry = suite, RunSettings(memory=name), "hippo-tiny", tmp_path / "tasks", Permissions(dry_run=True)
    if name.startswith("foreign"):
        assert run_all_items(*dry) == [] and not (tmp_path / "ran").exists()
    else:
        with pytest.raises(LabError, match=re.escape(says)):
            run_all_items(*dry)
    with pytest.raises(LabError, match=re.escape(says)):
        under_test.opener(name, "hippo-tiny", "own")


@pytest.mark.parametrize(("command", "says"), [("'open", "No closing quotation"), ("a\0b", "cannot be started"), ("", "is empty")])
def test_a_command_that_is_none_is_reported_in_a_line(command, says):
    with pytest.raises(LabError, match=says):
        Program(command, [])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"conditions": ("lexical", "lexical")}, "expected different ones"),
        ({"conditions": ("telepathy",)}, f"legal: {', '.join(sorted(CONDITIONS))}"),
        ({"answer_mode": "llm"}, "answer_mode llm needs profile llm"),
        ({"profile": "cloud"}, "unknown profile 'cloud'"),
        ({"encoder": "cloud"}, "unknown encoder 'cloud'"),
        ({"timeout_s": math.nan}, "timeout: expected a number from 0.1 to 86400, got nan"),
        ({"timeout_s": math.inf}, "timeout: expected a number"),
        ({"limit": -5}, "limit: expected a number from 0 to"),
        ({"repeats": 0}, "repeats: expected a number from 1 to"),
        ({"provider": "ollama:x"}, "answers in profile llm alone"),
        ({"provider": "ollama:x", "profile": "llm", "answer_mode": "deterministic"}, "answers in profile llm alone"),
        ({"profile": "llm", "key_env": "KEY"}, "key_env goes with a provider"),
        ({"provider": "telepathy", "profile": "llm"}, "unknown provider 'telepathy'"),
    ],
)
def test_settings_that_are_none_are_refused(tmp_path, changes, says):
    with pytest.raises(LabError, match=says):
        rows_of(suites.write(tmp_path / "s", worlds=suites.WORDS[:1]), **changes)


def test_random_memory_brings_no_note_that_any_label_makes_right():
    notes = [SuiteNote(id=f"n{number}", text="A note.", tags=["key"] if number == 1 else []) for number in range(4)]
    item = Retrieval(id="q", type="retrieval", question="Which?", top_k=3, expected_notes=["n0"], expected_tags=["key"])
    suite: Any = SimpleNamespace(by_world={"main": notes})
    condition = open_condition("random-memory", suite, "main", lambda name, given: None, 7)  # type: ignore[arg-type, return-value]
    assert {passage.note for passage in condition.retrieve(item, 0).shown} == {"n2", "n3"}

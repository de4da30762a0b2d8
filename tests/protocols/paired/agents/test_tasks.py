"""Tasks as they are meant: the smoke suite, sequences in one workspace, assertions, and token usage."""

import json
import threading

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.run import checked, run_item
from hippo_core.protocols.paired.agents.tasks import Usage
from hippo_core.protocols.paired.agents.tasks import parse as usage_of
from hippo_core.protocols.paired.items import CommandTask
from hippo_core.protocols.paired.suite import read_suite
from tests.protocols.paired.agents.conftest import MODES, SMOKE, recall, task

contained = pytest.mark.skipif(not MODES, reason="no containment here")
ITEMS = {item.id: item for item in read_suite(SMOKE).items}


@pytest.mark.parametrize("item", ITEMS)
def test_no_item_runs_unless_commands_are_allowed(item, tmp_path):
    with pytest.raises(LabError, match="say --allow-shell"):
        run_item(ITEMS[item], "full-memory", SMOKE, tmp_path / "out", recall)
    assert not (tmp_path / "out").exists()


def test_the_smoke_suite_succeeds_with_memory_in_every_mode(mode, tmp_path):
    result = run_item(ITEMS["fill-port"], "full-memory", SMOKE, tmp_path, recall, allow_shell=True, mode=mode)
    assert result.success and result.containment == mode, result.notes


@contained
def test_a_sequence_builds_in_one_workspace_and_keeps_each_steps_artifacts(tmp_path):
    result = run_item(ITEMS["fill-all"], "full-memory", SMOKE, tmp_path, recall, allow_shell=True)
    assert result.success and result.scores["memory_queries_verified"] == 3 == result.scores["steps_passed"], result.notes
    folder = tmp_path / "fill-all-full-memory-r0"
    assert sorted(path.name for path in (folder / "steps").iterdir()) == ["01-port", "02-region", "03-owner"]
    assert json.loads((folder / "workspace" / "service.json").read_text())["port"] == 7431
    assert json.loads((folder / "steps" / "02-region" / "queries.json").read_text())[0]["id"] == "q1"
    assert "$MEMORY_QUERY" in (folder / "steps" / "01-port" / "prompt.md").read_text()
    assert result.usage and result.usage.total == sum(step.usage.total for step in result.sub_results if step.usage)
    item = ITEMS["fill-all"].model_copy(update={"steps": ITEMS["fill-all"].steps[:2]})
    result = run_item(item, "no-memory", SMOKE, tmp_path, None, allow_shell=True)
    assert not result.success and len(result.sub_results) == 2 and result.scores["steps_passed"] == 0
    assert "There is no memory" in (tmp_path / "fill-all-no-memory-r0" / "steps" / "01-port" / "prompt.md").read_text()


@contained
def test_a_memory_that_holds_something_else_is_worth_nothing(tmp_path):
    """Wiring: the answer comes from what the memory says, which is asked in the thread that opened it."""
    threads = set()

    def other(question):
        threads.add(threading.get_ident())
        return [{**note, "text": note["text"].replace("7431", "1234")} for note in recall(question)]

    result = run_item(ITEMS["fill-port"], "other", SMOKE, tmp_path, other, allow_shell=True)
    assert not result.success and "is 1234, not 7431" in result.notes[-1] and result.scores["memory_queries_verified"] == 1
    assert threads == {threading.get_ident()}


@contained
def test_a_score_script_is_hidden_from_the_agent(tmp_path):
    item = ITEMS["still-json"].model_copy(update={"command": "ls {scripts} /score; env; true"})
    assert run_item(item, "full-memory", SMOKE, tmp_path, None, allow_shell=True).success
    seen = (tmp_path / "still-json-full-memory-r0" / "steps" / "01-task" / "agent.stdout").read_text()
    assert "fake_agent.py" in seen and "complete.py" not in seen
    assert "PATH=" in seen and "full-memory" not in seen  # the condition is nowhere to be read
    item = item.model_copy(update={"command": "cat {score}/complete.py"})
    assert "does not see" in run_item(item, "other", SMOKE, tmp_path, None, allow_shell=True).notes[0]


@pytest.mark.parametrize(
    ("assertion", "passes"),
    [
        ({"file": "a.txt", "contains": "irs"}, True),
        ({"file": "a.txt", "contains": "second"}, False),
        ({"file": "a.txt", "equals": "first"}, True),
        ({"file": "a.txt", "equals": "firs"}, False),
        ({"file": "j", "json_path": "a.1.b", "equals": 2}, True),
        ({"file": "j", "json_path": "a.1.b", "equals": True}, False),
        ({"file": "j", "json_path": "a.1.b", "equals": "2"}, False),
        ({"file": "j", "json_path": "a.7", "equals": 2}, False),
        ({"file": "j", "json_path": "n", "equals": None}, True),
        ({"file": "a.txt", "json_path": "a", "equals": 1}, False),
        ({"file": "none", "contains": "x"}, False),
        ({"file": "deep", "json_path": "0", "equals": 1}, False),
    ],
)
def test_assertions(assertion, passes, tmp_path):
    (tmp_path / "a.txt").write_text("first\n")
    (tmp_path / "j").write_text('{"a": [1, {"b": 2}], "n": null}')
    (tmp_path / "deep").write_text("[" * 99_999)
    assert (checked(task("true", required_content=[assertion]), tmp_path) == [""]) is passes


@contained
def test_files_wanted_and_forbidden_and_scores_that_fail(run):
    result = run("touch extra", required_files=["a.txt", "missing"], forbidden_files=["extra", "other"], score_commands=["false", "true"])
    assert {"task: required: no file missing", "task: forbidden file extra is there", "task: score command 1: exit status 1"} == set(
        result.notes
    )
    assert (result.scores["score_commands_passed"], result.scores["assertions_passed"], result.scores["assertions"]) == (1, 2, 4)


@contained
def test_a_command_task_may_expect_a_status(run, suite, tmp_path):
    for expected, wanted in ((3, True), (0, False)):
        plain = {"id": f"c{expected}", "type": "command_task", "command": "exit 3", "prompt": "p", "expected_exit_code": expected}
        item = CommandTask.model_validate(plain)
        assert run_item(item, "no-memory", suite, tmp_path / "out", allow_shell=True).success is wanted


@contained
def test_an_item_that_needs_token_usage_fails_without(run):
    assert "no token usage" in run("echo hello", token_usage="required").notes[0]
    assert run("""echo '{"tokens": {"input": 5, "output": 2, "cached": 4}}'""", id="said", token_usage="required").usage == Usage(5, 2, 4)


CLAUDE = {"input_tokens": 4, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 7}
CODEX = [{"input_tokens": 50, "cached_input_tokens": 40, "output_tokens": 5}, {"input_tokens": 9, "output_tokens": 1}]
GEMINI = {"stats": {"models": {"a": {"tokens": {"prompt": 9, "candidates": 2, "cached": 3, "thoughts": 4}}}}}


@pytest.mark.parametrize(
    ("form", "stdout", "usage"),
    [
        ("claude", json.dumps({"type": "result", "usage": CLAUDE}), Usage(114, 7, 100)),
        ("codex", 'noise\n{"type": "x"}\n' + "\n".join(json.dumps({"usage": event}) for event in CODEX), Usage(50, 5, 40)),
        ("gemini", json.dumps(GEMINI, indent=1), Usage(9, 6, 3)),
        ("plain", '{"tokens": {"input": 1, "output": 1, "cached": 2}}', None),
        ("plain", '{"tokens": {"input": -1, "output": 1}}', None),
        ("plain", '{"tokens": {"input": true, "output": 1}}', None),
        ("plain", "tokens: 5", None),
        ("plain", '{"tokens": {"input": 1%s, "output": 1}}' % ("0" * 30), None),
        ("plain", '{"tokens": {"input": 1e999, "output": 1}}', None),
        ("codex", "[" * 100_000, None),
    ],
)
def test_cached_tokens_are_counted_once(form, stdout, usage):
    assert usage_of(stdout.encode(), form) == usage


@contained
def test_the_visible_folders_cannot_be_changed(run, suite):
    (suite / "scripts").mkdir()
    (suite / "scripts" / "tool").write_text("echo tool")
    result = run(
        "echo x > {scripts}/tool || echo kept; rm -f {scripts}/tool; echo x > {prompt_file}; sh {scripts}/tool > out",
        required_content=[{"file": "out", "equals": "tool"}],
    )
    assert result.success, result.notes

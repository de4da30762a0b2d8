"""Models behind commands: small fake commands that answer, and others that misbehave in every way that real ones do."""

import json
import os
import stat
import time

import pytest

from hippo_core.errors import LabError
from hippo_core.providers import load_provider
from hippo_core.providers.command import COMMANDS
from hippo_core.providers.retry import RetryPolicy

QUICK = RetryPolicy(attempts=3, first_pause=0.001, timeout=10)
ONCE = RetryPolicy(attempts=1, timeout=10)
COUNTED = {"input_tokens": 7, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 2, "output_tokens": 3}
CLAUDE = {"result": "Ghent", "usage": COUNTED}
BOTH = {"a": {"tokens": {"prompt": 40, "candidates": 3, "thoughts": 5, "cached": 10}}, "b": {"tokens": {"prompt": 2, "candidates": 1}}}
GEMINI = {"response": "Ghent", "stats": {"models": BOTH}}
CODEX = [
    {"type": "thread.started"},
    {"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}},
    {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "Ghent"}},
    {"type": "turn.completed", "usage": {"input_tokens": 25, "cached_input_tokens": 9, "output_tokens": 6}},
]  # fmt: skip


def lines(values):
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Put a command of this name and shell script first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(script, name="claude", output=""):
        (tmp_path / "output").write_text(output) if isinstance(output, str) else (tmp_path / "output").write_bytes(output)
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script.replace('OUTPUT', str(tmp_path / 'output')).replace('HERE', str(tmp_path))}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("name", "output", "tokens"),
    [
        ("claude", json.dumps(CLAUDE), (39, 3, 30)),
        ("gemini", json.dumps(GEMINI), (42, 9, 10)),
        ("codex", lines(CODEX), (25, 6, 9)),
        ("claude", json.dumps({"result": "Ghent"}), (None, None, None)),
        ("claude", json.dumps({"result": "Ghent", "usage": {"output_tokens": 0}}), (None, 0, None)),
        ("gemini", json.dumps({"response": "Ghent", "stats": {}}), (None, None, None)),
        ("codex", lines(CODEX[:4:3]), (None, None, None)),
        ("codex", lines(CODEX) + '{"type": "turn.compl', (25, 6, 9)),
    ],
)
def test_tokens_are_read_and_what_is_not_said_is_none(command, name, output, tokens):
    command("cat > /dev/null; cat OUTPUT", name, output)
    answer = load_provider(name, ONCE).answer("Where?")
    assert (answer.text, answer.error) == ("Ghent", None)
    assert (answer.tokens_in, answer.tokens_out, answer.cached_tokens) == tokens


def test_the_prompt_comes_on_standard_input_as_it_is_and_never_as_a_word(command):
    call_folder = command('cat > HERE/prompt; echo "$@" > HERE/words; pwd > HERE/folder; cat OUTPUT', "codex", lines(CODEX))
    prompt = "$(touch HERE/broken) `id` 'a' \"b\" ; ü\n" + "long " * 50_000
    assert load_provider("codex:o9", ONCE).answer(prompt).error is None
    assert (call_folder / "prompt").read_text() == prompt
    assert (call_folder / "words").read_text().split() == [*COMMANDS["codex"].argv[1:-1], "--model", "o9", "-"]
    assert "hippo-call-" in (call_folder / "folder").read_text()
    assert not os.path.exists((call_folder / "folder").read_text().strip())


def test_only_the_listed_environment_is_handed_on(command, monkeypatch):
    for name in ("SECRET_OF_MINE", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "x")
    call_folder = command("env > HERE/env; cat OUTPUT", output=json.dumps(CLAUDE))
    load_provider("claude", ONCE).answer("Where?")
    names = {line.partition("=")[0] for line in (call_folder / "env").read_text().splitlines()}
    assert "ANTHROPIC_API_KEY" in names and not {"SECRET_OF_MINE", "OPENAI_API_KEY"} & names


@pytest.mark.parametrize(
    ("script", "output", "said", "attempts"),
    [
        ("echo no such model >&2; exit 3", "", "exit status 3: no such model", 1),
        ("echo '429 Too Many Requests' >&2; exit 1", "", "429", 3),
        ("echo 'Error 529: Overloaded'; exit 1", "", "529", 3),
        ("kill -9 $$", "", "killed by signal 9", 3),
        ("exit 0", "", "nothing on its output", 3),
        ("cat OUTPUT", json.dumps({"result": "  "}), "the answer is empty", 3),
        ("cat OUTPUT", b'{"result": "\xff\xfe"}', "no UTF-8 (byte 12 of 16)", 1),
        ("cat OUTPUT", "<html><body>Sign in</body></html>", "got HTML: <html><body>Sign in", 1),
        ("cat OUTPUT", json.dumps(CLAUDE)[:-9], "no whole JSON", 3),
        ("cat OUTPUT", '["Ghent"]', "expected a JSON object", 1),
        ("cat OUTPUT", json.dumps({"is_error": True, "result": "credit is too low"}), "credit is too low", 1),
        ("cat OUTPUT", json.dumps({"is_error": True, "result": "API Error: 529 overloaded"}), "529", 3),
    ],
)  # fmt: skip
def test_a_failure_is_an_answer_that_says_why_and_is_tried_again_where_that_can_help(command, script, output, said, attempts):
    command(script, output=output)
    answer = load_provider("claude", QUICK).answer("Where?")
    assert said in (answer.error or "") and (answer.error or "").startswith("claude")
    assert (answer.text, answer.tokens_in, answer.attempts) == ("", None, attempts)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (lines(CODEX[:2]), "no message"),
        (lines(CODEX[:1]) + '{"type": "item.comp', "line 2 is no JSON"),
        (lines(CODEX[:1]) + "oh\n" + lines(CODEX[1:]), "line 2 is no JSON: oh"),
        (lines([{"type": "turn.failed", "error": {"message": "stream closed"}}]), "stream closed"),
    ],
)
def test_events_without_an_answer_fail(command, output, said):
    command("cat OUTPUT", "codex", output)
    assert said in (load_provider("codex", ONCE).answer("Where?").error or "")


def test_a_command_that_comes_to_its_senses_is_heard(command):
    command("n=$(cat HERE/n 2>/dev/null || echo 0); echo $((n+1)) > HERE/n; [ $n -lt 2 ] && { echo rate limit >&2; exit 1; }; cat OUTPUT",
            output=json.dumps(CLAUDE))  # fmt: skip
    answer = load_provider("claude", QUICK).answer("Where?")
    assert (answer.text, answer.attempts) == ("Ghent", 3)


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("ends", [False, True])
def test_all_of_its_processes_end_with_the_call(command, ends):
    call_folder = command(f"sleep 60 & echo $! > HERE/pid; {'cat OUTPUT' if ends else 'sleep 60'}", output=json.dumps(CLAUDE))
    begin = time.monotonic()
    answer = load_provider("claude", RetryPolicy(attempts=1, timeout=10 if ends else 0.5)).answer("Where?")
    assert (answer.text, answer.error) == (("Ghent", None) if ends else ("", "claude: no answer within 0.5 s"))
    assert time.monotonic() - begin < 5
    pid = int((call_folder / "pid").read_text())
    deadline = time.monotonic() + 2
    while not has_ended(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert has_ended(pid)


def test_an_output_without_end_is_cut_off(command):
    command("yes all-the-same")
    begin = time.monotonic()
    answer = load_provider("claude", QUICK).answer("Where?")
    assert "more than 8,388,608 bytes" in (answer.error or "") and answer.attempts == 1
    assert time.monotonic() - begin < 8


@pytest.mark.parametrize(
    ("name", "check", "says"),
    [("gemini", True, "gemini is not on the PATH"), ("oracle", True, "legal: claude"), ("codex:--yolo", False, "got the option")],
)
def test_a_mistake_is_said_before_anything_runs(monkeypatch, name, check, says):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match=says):
        load_provider(name, check=check)
    assert load_provider("codex:o9", check=False).describe().endswith("--model o9 -")

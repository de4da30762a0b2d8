"""Wrappers of real agents, each proved by a program of its name: what it is called with, its final message, and that it need not end."""

import json
import os
import subprocess

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents import run as runs
from hippo_core.protocols.paired.agents.tasks import SANDBOXES, Usage, final_message, parse, task_of
from tests.protocols.paired.agents.conftest import MODES, task

OUTPUT = {
    "claude": json.dumps({"type": "result", "result": "Done.", "usage": {"input_tokens": 5, "output_tokens": 2}}),
    "codex": "\n".join(
        json.dumps(event)
        for event in (
            {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}},
            {"type": "item.completed", "item": {"type": "command_execution", "text": "ls"}},
            {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}},
        )
    ),
    "gemini": json.dumps({"response": "Done.", "stats": {"models": {"m": {"tokens": {"prompt": 5, "candidates": 2}}}}}, indent=1),
}
FAKE = "#!/bin/sh\necho \"$0 $*\" > called\ncat > prompt.txt\ncat <<'X'\n{}\nX\n{}\n"


def fake(folder, agent, then):
    folder.mkdir(exist_ok=True)
    (folder / agent).write_text(FAKE.format(OUTPUT[agent], then))
    (folder / agent).chmod(0o755)


@pytest.mark.parametrize("agent", OUTPUT)
def test_a_wrapper_hands_on_prompt_and_sandbox_and_ends_once_the_final_message_is_stable(agent, tmp_path):
    for sandbox, then, status in (("", "exit 3", 3), (SANDBOXES[agent][1], "sleep 60", 0)):
        fake(tmp_path / "bin", agent, then)
        for name, text in ({"prompt.md": "Do it."} | dict(task_of(task("true"), agent, sandbox).wrapper)).items():
            (tmp_path / name).write_text(text)
        around = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "WATCH_S": "0.05"}
        process = subprocess.Popen(["sh", f"{tmp_path}/agent.sh"], cwd=tmp_path, env=around, stdout=subprocess.PIPE, start_new_session=True)
        assert process.wait(10) == status
        os.killpg(process.pid, 9) if not status else None  # what the harness does
        stdout = process.stdout.read()
        assert (final_message(stdout, agent), parse(stdout, agent)) == ("Done.", Usage(5, 2))
        assert (tmp_path / "prompt.txt").read_text() == "Do it."
        wanted = sandbox or {"codex": "--dangerously-bypass-approvals-and-sandbox"}.get(agent, SANDBOXES[agent][0])
        assert wanted in (tmp_path / "called").read_text().split()


@pytest.mark.skipif(not MODES, reason="no containment here")
def test_a_wrapped_agent_runs_contained_and_its_final_message_is_kept_without_the_key(suite, tmp_path, monkeypatch):
    fake(suite / "scripts", "codex", 'echo "$CODEX_API_KEY" >&2; sleep 300')
    monkeypatch.setenv("CODEX_API_KEY", "a-key-of-a-test")

    def beside(item, agent, sandbox):
        real = task_of(item, agent, sandbox)
        return runs.replace(real, command=f"WATCH_S=0.05 PATH={{scripts}}:$PATH {real.command}", network=False)

    monkeypatch.setattr(runs, "task_of", beside)
    named = {"agent": "codex", "sandbox": "workspace-write", "passed": ["CODEX_API_KEY"]}
    result = runs.run_item(task("true", required_files=["called"]), "no-memory", suite, tmp_path / "out", allow_shell=True, **named)
    assert result.success and result.usage == Usage(5, 2), result.notes
    step = tmp_path / "out" / "one-no-memory-r0" / "steps" / "01-task"
    assert (step / "final.md").read_text() == "Done." and "[CODEX_API_KEY]" in (step / "agent.stderr").read_text()


@pytest.mark.parametrize(
    ("agent", "sandbox", "why"), [("codex", "yolo", "workspace-write"), ("", "yolo", "name its agent"), ("x", "", "codex")]
)
def test_an_agent_or_sandbox_that_is_none_is_refused(agent, sandbox, why):
    with pytest.raises(LabError, match=why):
        task_of(task("true"), agent, sandbox)

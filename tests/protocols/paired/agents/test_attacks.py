"""Agents and suites that do not play fair: each is refused or contained, the item says why, and the next item runs."""

import json
import os

import pytest
from pydantic import ValidationError

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.run import run_item
from hippo_core.protocols.paired.agents.workspace import MOST, fresh_copy, read
from tests.protocols.paired.agents.conftest import MODES, task

contained = pytest.mark.skipif(not MODES, reason="no containment here")
ASK = "$MEMORY_QUERY --id q1"
QUESTION = {"memory_questions": ["On which port does the ledger listen?"]}


@pytest.mark.parametrize("path", ["../outside", "/etc", "fixture/../../x", "", ".", "a\0b"])
def test_a_path_that_leads_out_is_refused(path, suite, tmp_path):
    with pytest.raises(ValidationError, match="within the workspace"):
        task("true", required_files=[path or ".."])
    with pytest.raises(LabError, match="a path within the suite"):
        fresh_copy(suite, path, tmp_path / "workspace")


@contained
@pytest.mark.parametrize("inside", ["fixture/link", "fixture/folder/link"])
@pytest.mark.parametrize("target", ["/etc/passwd", "a.txt", "../.."])
def test_a_fixture_with_a_link_is_refused_and_the_item_says_why(inside, target, suite, run):
    (suite / inside).parent.mkdir(exist_ok=True)
    (suite / inside).symlink_to(target)
    result = run("true")
    assert not result.success and "holds a link" in result.notes[0] and not result.sub_results


def test_a_fixture_with_a_pipe_or_a_hard_link_or_behind_a_link_is_refused(suite, tmp_path):
    os.mkfifo(suite / "fixture" / "pipe")
    with pytest.raises(LabError, match="no plain file"):
        fresh_copy(suite, "fixture", tmp_path / "one")
    (suite / "fixture" / "pipe").unlink()
    os.link(suite / "fixture" / "a.txt", suite / "fixture" / "b.txt")
    with pytest.raises(LabError, match="hard link"):
        fresh_copy(suite, "fixture", tmp_path / "two")
    (suite / "linked").symlink_to("/etc")
    for name in ("linked", "linked/apt"):
        with pytest.raises(LabError, match="the link"):
            fresh_copy(suite, name, tmp_path / "three")


@pytest.mark.parametrize("name", ["a;b", "$(id)", "../x", "a/b", "a b", "-rf", "", "é", "x" * 101])
def test_a_name_that_is_no_plain_word_is_refused(name, suite, tmp_path):
    with pytest.raises(ValidationError, match="id"):
        task("true", id=name)
    with pytest.raises(LabError, match="condition"):
        run_item(task("true"), name, suite, tmp_path / "out", allow_shell=True)


@contained
def test_files_with_shell_metacharacters_in_their_names_are_only_files(suite, run):
    name = "$(touch pwned); `touch pwned` & 'x\""
    (suite / "fixture" / name).write_text("plain")
    result = run('test ! -e pwned && cat "{prompt_file}" > seen', prompt="$(touch pwned) `touch pwned`; {x}", required_files=[name, "seen"])
    assert result.success, result.notes
    assert task("true", prompt="'; touch pwned").prompt == "'; touch pwned"


@contained
def test_evidence_that_an_agent_writes_proves_nothing(run):
    fake = json.dumps([{"id": "q1", "question": QUESTION["memory_questions"][0], "results": 3, "error": ""}])
    forged = f"echo '{fake}' > queries.json; cp queries.json memory-evidence.json; mkdir -p .memory-eval && cp queries.json .memory-eval/"
    result = run(forged, **QUESTION)
    assert not result.success and any("memory not asked" in note for note in result.notes)
    assert result.scores["memory_queries_verified"] == 0
    assert run(f"{forged}; {ASK}", id="asked", **QUESTION).scores["memory_queries_verified"] == 1


@contained
def test_a_run_without_memory_has_no_socket_and_fails_on_claimed_evidence(run):
    result = run('test -z "$MEMORY_QUERY" && test ! -e /memory', "no-memory", None, **QUESTION)
    assert result.success and result.scores["memory_queries_required"] == 0
    for number, name in enumerate(("memory-evidence.md", "sub/.memory-eval/x", "Memory-Evidence.json")):
        result = run(f"mkdir -p sub/.memory-eval; touch {name}" if "/" in name else f"touch {name}", "no-memory", None, id=f"n{number}")
        assert not result.success and "claims a memory" in result.notes[0]


@contained
def test_a_link_that_an_agent_leaves_is_not_followed(run, tmp_path):
    (tmp_path / "gold").write_text("gold")
    command = f"ln -s {tmp_path}/gold answer; ln -s {tmp_path} sub; mkfifo pipe; truncate -s 7M holes; echo x > note"
    demands = [{"file": name, "contains": "gold"} for name in ("answer", "sub/gold", "pipe", "holes")]
    result = run(command, required_content=demands)
    notes = " ".join(result.notes)
    assert notes.count("a link, or a link leads to it") == 2 and "no plain file" in notes and "holes does not contain" in notes
    kept = tmp_path / "out" / "one-full-memory-r0" / "workspace"
    assert (kept / "answer").is_symlink() and (kept / "note").read_text() == "x\n" and not (kept / "pipe").exists()


@contained
def test_names_and_output_that_are_no_text_are_kept(run, tmp_path):
    result = run(r"""printf 'a\377' ; touch "$(printf 'memory-evidence\377\n')" """, "no-memory", None)
    assert r"memory-evidence\udcff claims" in result.notes[0]
    folder = tmp_path / "out" / "one-no-memory-r0"
    assert (folder / "steps" / "01-task" / "agent.stdout").read_bytes() == b"a\xff"
    assert json.loads((folder / "summary.json").read_text())["success"] is False


@contained
def test_a_timeout_fails_the_item_wherever_it_comes(run):
    assert "agent: timed out" in run("sleep 30", timeout_s=0.5).notes[0]
    assert "score command 1: timed out" in run("true", id="score", score_commands=["sleep 30"], timeout_s=0.5).notes[0]
    assert "setup command 1: timed out" in run("true", id="setup", setup_commands=["sleep 30"], timeout_s=0.5).notes[0]


@contained
def test_a_passed_secret_is_neither_printed_nor_left(run, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENT_KEY", "s3cret-value")
    monkeypatch.setenv("OTHER", "never")
    result = run(
        "echo $AGENT_KEY $OTHER; mkdir d; echo key=$AGENT_KEY > 'd/a\\b'", environment=["AGENT_KEY"], passed=["AGENT_KEY", "OTHER"]
    )
    assert "AGENT_KEY was left in d/a" in result.notes[0]
    assert (tmp_path / "out" / "one-full-memory-r0" / "steps" / "01-task" / "agent.stdout").read_bytes() == b"[AGENT_KEY]\n"
    assert "--pass-env" in run("true", id="not-passed", environment=["AGENT_KEY"]).notes[0]
    hidden = {"score_commands": ['test -z "$AGENT_KEY"'], "environment": ["AGENT_KEY"], "passed": ["AGENT_KEY"]}
    assert run("true", id="score", **hidden).success


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "MEMORY_QUERY", "PYTHONPATH", "a-b"])
def test_a_variable_that_would_change_the_harness_is_refused(name):
    with pytest.raises(ValidationError, match="cannot be passed"):
        task("true", environment=[name])


@contained
def test_a_memory_that_fails_and_an_agent_that_floods_it_do_not_stop_the_run(run):
    def broken(question):
        raise RuntimeError("out of memory")

    result = run(f"{ASK}; echo still here > note", memory=broken, required_files=["note"], **QUESTION)
    assert not result.success and "memory not asked, or it found nothing: q1" in " ".join(result.notes)
    flood = (
        "import socket,os; place=os.environ['MEMORY_QUERY'].split()[1].replace('query','socket')\n"
        "for text in (b'', b'x'*200000, b'[1]\\n', b'{\"id\": \"q9\"}\\n', b'['*60000+b'\\n'):\n"
        "    one=socket.socket(socket.AF_UNIX); one.connect(place)\n"
        "    try: one.sendall(text); one.shutdown(1); one.recv(9)\n"
        "    except OSError: pass\n"
    )
    result = run(
        f'{{python}} -c "$FLOOD" ; {{python}} flood.py; {ASK}', id="flood", setup_commands=[f"cat > flood.py <<'E'\n{flood}E"], **QUESTION
    )
    assert result.success and result.scores["memory_queries"] == 1, result.notes


@pytest.mark.parametrize("demand", [{}, {"contains": "a", "equals": "b"}, {"contains": "a", "json_path": "b"}, {"equals": 1}])
def test_a_demand_that_asks_nothing_or_two_things_is_refused(demand):
    with pytest.raises(ValidationError, match="equals"):
        task("true", required_content=[{"file": "a", **demand}])


def test_a_file_without_end_is_not_read(tmp_path):
    with (tmp_path / "big").open("wb") as file:
        file.truncate(MOST + 1)
    with pytest.raises(LabError, match="at most"):
        read(tmp_path, "big")

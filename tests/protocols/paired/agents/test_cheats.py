"""Agents that cheat: they look at what is not theirs, leave something for the next condition, hide a key, or try to end the run."""

import base64
import ctypes
import json
import os
import platform
import secrets
import shutil
import socket
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents import sandbox_init, workspace
from hippo_core.protocols.paired.agents.containment import Containment
from hippo_core.protocols.paired.agents.evidence import MemorySocket
from hippo_core.protocols.paired.agents.run import Permissions, run_item, run_tasks
from hippo_core.protocols.paired.agents.workspace import keep, names, remove, walk
from hippo_core.protocols.paired.page import summary
from hippo_core.protocols.paired.run_files import read_run, write_run
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import read_suite
from tests.protocols.paired.agents.conftest import MODES, SMOKE, alive, recall, task
from tests.store.test_against_a_list import QUICK

contained = pytest.mark.skipif(not MODES, reason="no containment here")
KEY = "s3cret-value/with+more"
libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY = {"x86_64": 248, "aarch64": 217}.get(platform.machine(), -1)
SESSION, JOIN, UNLINK, SEARCH, READ = -3, 1, 9, 10, 11
KEYS = f"""
import ctypes, sys
libc, call = ctypes.CDLL(None), {sandbox_init.KEYCTL.get(platform.machine(), -1)}
own, key, ring = libc.syscall(call, {SEARCH}, {SESSION}, b"user", b"hippo", 0), int(sys.argv[1]), int(sys.argv[2])
held = ctypes.create_string_buffer(9)
print(own, [libc.syscall(call, {READ}, one, held, 9) for one in (key, ring)], libc.syscall(call, {UNLINK}, key, ring))
"""
IPC = """
import ctypes, sys
libc, key = ctypes.CDLL(None), int(sys.argv[1])
made = [libc.shmget(key, 64, 0o1666), libc.msgget(key, 0o1666), libc.semget(key, 1, 0o1666)]
there = [libc.shmget(key, 0, 0), libc.msgget(key, 0), libc.semget(key, 0, 0)]
queue = ctypes.CDLL("librt.so.1").mq_open(b"/hippo", 0o102, 0o666, None)
print(made, there, queue)
"""


@pytest.fixture
def quick():
    """A folder on a disk in memory, where there is one: thousands of folders are slow on a real one."""
    with tempfile.TemporaryDirectory(dir=QUICK if QUICK.is_dir() else None) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def caller_keys():
    """A session keyring of the test's with one key in it: key, keyring."""
    ring = libc.syscall(sandbox_init.KEYCTL.get(platform.machine(), -1), JOIN, None)
    key = libc.syscall(ADD_KEY, b"user", b"hippo", b"gold", 4, SESSION)
    if ring < 0 or key < 0:
        pytest.skip("this machine has no keyrings")
    return key, ring


def test_the_callers_keys_are_neither_seen_nor_unlinked(box, caller_keys):
    ran = box.run([box.python, "-c", KEYS, *map(str, caller_keys)])
    assert ran.stdout == b"-1 [-1, -1] -1\n", ran
    assert libc.syscall(sandbox_init.KEYCTL[platform.machine()], SEARCH, SESSION, b"user", b"hippo", 0) == caller_keys[0]


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", "/run/lock", "$HOME", "$TMPDIR"])
def test_what_an_agent_hides_beside_its_folder_is_gone_for_the_next(folder, mode):
    with Containment.open(mode=mode) as first:
        first.run(["sh", "-c", f"mkdir -p {folder}/hippo-hidden; echo gold > {folder}/hippo-hidden/x"])
    with Containment.open(mode=mode) as second:
        assert second.run(["sh", "-c", f"cat {folder}/hippo-hidden/x; echo end"]).stdout == b"end\n"


def test_shared_memory_and_queues_end_with_the_command(box):
    queues, key = [], str(secrets.randbelow(1 << 30) + 1)
    for _ in range(2):
        ran = box.run([box.python, "-c", IPC, key])
        made, there, queue = ran.stdout.decode().strip().replace("] ", "]|").split("|")
        assert json.loads(made) == json.loads(there) and min(json.loads(made)) >= 0
        queues.append(queue)
    assert box.apart or queues == ["-1", "-1"]
    assert not any(key in Path(f"/proc/sysvipc/{kind}").read_text().split() for kind in ("shm", "msg", "sem"))


@pytest.mark.parametrize("network", [False, True])
def test_an_abstract_socket_outside_is_not_reached(network, mode):
    with socket.socket(socket.AF_UNIX) as outside, Containment.open(mode=mode, network=network) as box:
        outside.bind(b"\0hippo-outside")
        outside.listen()
        ran = box.run([box.python, "-c", "import socket; socket.socket(socket.AF_UNIX).connect(b'\\0hippo-outside'); print('reached')"])
    assert ran.status == 1 and b"reached" not in ran.stdout


def test_the_score_scripts_and_other_runs_are_not_read(mode, suite, tmp_path):
    (suite / "score").mkdir()
    (suite / "score" / "gold").write_text("gold")
    (tmp_path / "out" / "earlier").mkdir(parents=True)
    (tmp_path / "out" / "earlier" / "answer").write_text("gold")
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    command = f"cat ../score/* ../../*/score/* {suite}/score/gold {tmp_path}/out/earlier/answer; ls ..; echo looked"
    run_item(task(command), "no-memory", suite, tmp_path / "out", allow_shell=True, mode=mode)
    output = (tmp_path / "out" / "one-no-memory-r0" / "steps" / "01-task" / "agent.stdout").read_text()
    assert "gold" not in output and "score" not in output and output.endswith("looked\n")


@contained
def test_what_is_left_alive_is_reported(monkeypatch):
    """A keeper that kills nothing: the harness looks for itself."""
    if "uid" not in MODES:
        pytest.skip("needs root")
    from hippo_core.protocols.paired.agents import containment

    lame = (
        (containment.SANDBOX_INIT).read_text().replace("os.kill(-1, signal.SIGKILL)", "pass").replace("PATIENCE = 10.0", "PATIENCE = 1.0")
    )
    with Containment.open(mode="uid") as box:
        script = box.workspace.parent / "hippo-lame-keeper.py"
        script.write_text(lame)
        monkeypatch.setattr(containment, "SANDBOX_INIT", script)
        try:
            with pytest.raises(LabError, match=rf"of user {box.uid} are still alive"):
                box.run(["sh", "-c", "sleep 60 > /dev/null 2>&1 & exit 0"])
        finally:
            script.unlink()
            for pid in (int(line.split()[0]) for line in alive(box.uid)):
                os.kill(pid, 9)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_who_kills_cannot_be_killed():
    """A process may be signalled by those whose id is its real or saved one."""
    read, write = os.pipe()
    if not (child := os.fork()):
        sandbox_init.os.kill = lambda pid, number: os.write(write, json.dumps([pid, *os.getresuid()]).encode())
        sandbox_init.kill_as(54_321, 54_322)
    os.waitpid(child, 0)
    assert json.loads(os.read(read, 99)) == [-1, 54_322, 54_321, 54_322]
    os.close(read)
    os.close(write)


HIDDEN = {
    "a big file": "head -c 7M /dev/zero > big; for n in 1 2; do cat big big big > bigger; mv bigger big; done; echo $K >> big",
    "a file over the edge of a piece": "head -c 1048570 /dev/zero > edge; echo $K >> edge",
    "behind a hole": "truncate -s 7M holes; echo $K >> holes",
    "a file's name": 'echo > "$(echo $K | tr / -)"; mkdir -p "$K"',
    "a folder's name": 'mkdir -p "d/$K/e"; echo 1 > "d/$K/e/f"',
    "what a link points at": 'ln -s "/no/$K" link',
    "hex": "printf %s $K | od -An -v -tx1 | tr -d ' \\n' > hex",
    "base64": "printf a%s $K | base64 > coded",
    "base64, a short line each": "printf ab%s $K | base64 -w 6 > coded",
    "UTF-16": "printf %s $K | sed 's/./&\\x00/g' > wide",
    "closed": "mkdir d; echo $K > d/x; chmod 0 d/x d",
    "a question": "$MEMORY_QUERY What is $K ?",
    "printed in other forms": "printf %s $K | base64; printf %s $K | od -An -v -tx1 | tr -d ' \\n'; echo $K > left",
}


@contained
@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_key_that_an_agent_hides_is_noticed_and_not_kept(hidden, run, monkeypatch, tmp_path):
    monkeypatch.setenv("K", KEY)
    limits = {"processes": 40, "file": 100, "output": 0.01}
    result = run(HIDDEN[hidden], environment=["K"], passed=["K"], limits=limits)
    printed = (tmp_path / "out" / "one-full-memory-r0" / "steps" / "01-task" / "agent.stdout").read_bytes()
    assert "printed" not in hidden or printed.count(b"[K]") == 2
    assert not result.success and any("the value of K" in note for note in result.notes), result.notes
    folder = tmp_path / "out" / "one-full-memory-r0"
    for path, status in walk(folder):
        content = (folder / path).read_bytes() if stat.S_ISREG(status.st_mode) else b""
        forms = [KEY.encode(), KEY.encode().hex().encode(), KEY.encode("utf-16-le"), base64.b64encode(b"a" + KEY.encode())[2:-4]]
        assert KEY not in path and not any(form in content for form in forms), path


@contained
def test_a_sparse_file_stays_sparse(run, tmp_path):
    result = run("truncate -s 300M ends; echo end >> ends", limits={"file": None})
    kept = tmp_path / "out" / "one-full-memory-r0" / "workspace"
    assert result.success and (kept / "ends").stat().st_size == (300 << 20) + 4
    assert sum(path.stat().st_blocks for path in kept.iterdir()) < 1000
    with (kept / "ends").open("rb") as file:
        file.seek(-4, 2)
        assert file.read() == b"end\n"


DEEP = "import os\nfor n in range(3000):\n    os.mkdir('d'); os.chdir('d')"
LONG = "import os\nfor n in range(30):\n    os.mkdir('d' * 250); os.chdir('d' * 250)\nopen('x', 'w').write('x')"
BREAKERS = {
    "folders 3,000 deep": (f'{{python}} -c "{DEEP}"', "folders more than 200 deep"),
    "paths over 4,096 bytes": (f'{{python}} -c "{LONG}"', "path of more than"),
    "too many files": ('for n in 1 2 3 4 5 6 7 8 9; do echo > "f$n"; done', "more than 8 files"),
}


@contained
@pytest.mark.parametrize("breaker", BREAKERS)
def test_an_agent_that_breaks_its_workspace_breaks_its_item_alone(breaker, suite, tmp_path, quick, monkeypatch):
    command, why = BREAKERS[breaker]
    if "many" in breaker:
        monkeypatch.setattr(workspace, "MOST_NAMES", 8)
    monkeypatch.setattr("tempfile.tempdir", str(quick))
    broken = run_item(task(command), "no-memory", suite, tmp_path / "out", allow_shell=True)
    assert broken.fault and why in broken.notes[0]
    assert json.loads((tmp_path / "out" / "one-no-memory-r0" / "summary.json").read_text())["fault"] is True
    assert list(quick.iterdir()) == []
    shutil.rmtree(tmp_path / "out" / "one-no-memory-r0")  # what is kept any program can remove
    assert run_item(task("true", id="next"), "no-memory", suite, tmp_path / "out", allow_shell=True).success


LEFT = {
    "closed folders": "mkdir -p a/b; echo x > a/b/c; chmod 0 a/b/c a/b a",
    "a pipe and a socket": "mkfifo p; {python} -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"",
    "names of no text": "touch \"$(printf 'a\\377\\nb')\"; mkdir \"$(printf 'd\\033[2J')\"; echo x > \"$(printf 'd\\033[2J/\\377')\"",
    "links in circles": "ln -s . here; mkdir d; ln -s .. d/up; ln -s loop loop; ln -s /proc/self/fd fds",
    "hard links": "for n in 1 2 3; do ln a.txt b$n; done",
    "a folder that sets the user id": "chmod 7777 .; mkdir s; chmod 7777 s; cp /bin/true s/t; chmod 6755 s/t",
    "no folder at all": "rm -rf ./* .[!.]*; rmdir ../workspace; true",
}


@pytest.mark.parametrize("left", LEFT)
def test_whatever_is_left_the_item_is_judged_and_kept(left, mode, suite, tmp_path):
    result = run_item(task(LEFT[left]), "no-memory", suite, tmp_path / "out", allow_shell=True, mode=mode)
    assert result.success and not result.fault, result.notes
    kept = tmp_path / "out" / "one-no-memory-r0" / "workspace"
    assert kept.is_dir()
    for path in names(kept):
        bits = os.lstat(kept / path).st_mode
        assert stat.S_ISLNK(bits) or ((stat.S_ISREG(bits) or stat.S_ISDIR(bits)) and not bits & 0o6000)


MESSAGES = [
    (b'{"question": "\\ud800"}', "half of a character"),
    (b'{"id": "\\udfff"}', "no required question"),
    (b'{"question": ""}', "empty"),
    (b"\xff\xfe{", "one line of JSON"),
    (b'{"id": ' + b"9" * 5000 + b"}", "one line of JSON"),
    (b"[" * 60_000, "one line of JSON"),
    (b"[]", "one line of JSON"),
]


@pytest.mark.parametrize(("message", "why"), MESSAGES)
def test_a_broken_message_is_answered_and_noted(message, why):
    with MemorySocket(recall, {"q1": "On which port?"}, os.geteuid()) as memory, socket.socket(socket.AF_UNIX) as agent:
        agent.connect(str(memory.folder / "socket"))
        agent.sendall(message + b"\n")
        memory.serve()
        assert why in json.loads(agent.makefile("rb").readline())["error"]
    assert [why in call.error for call in memory.asked] == [True]
    json.dumps([call.question for call in memory.asked], ensure_ascii=False).encode()


def test_a_memory_that_returns_what_is_no_json_does_not_end_the_run():
    for answer in ([{"text": {1, 2}}], [3], None):
        with MemorySocket(lambda question, answer=answer: answer, {}, os.geteuid()) as memory:
            assert memory._answer(b'{"question": "what?"}') == b'{"error": "the memory failed"}\n'
        assert memory.asked[0].error and not memory.asked[0].results


@contained
@pytest.mark.parametrize("error", [RecursionError("too deep"), OSError(36, "File name too long"), ValueError("odd\ud800"), LabError("so")])
def test_an_error_that_nobody_foresaw_is_the_items(error, suite, tmp_path, monkeypatch):
    def failing(*_):
        raise error

    monkeypatch.setattr("hippo_core.protocols.paired.agents.run.run_step", failing)
    result = run_item(task("true"), "no-memory", suite, tmp_path / "out", allow_shell=True)
    assert result.fault and len(result.notes) == 1 and result.notes[0].encode()
    assert (tmp_path / "out" / "one-no-memory-r0" / "summary.json").is_file()


@contained
def test_a_run_goes_on_over_a_broken_item_and_counts_it(tmp_path):
    suite = read_suite(SMOKE)
    [plain] = [item for item in suite.items if item.type == "command_task"]
    broken = plain.model_copy(update={"id": "broken", "command": f'{{python}} -c "{LONG}"'})
    messages: list[str] = []
    settings = RunSettings(conditions=("no-memory",), memory="tests.protocols.paired.agents.conftest:Notebook")
    rows = run_tasks(replace(suite, items=(broken, plain)), settings, "hippo-tiny", tmp_path, Permissions(shell=True), messages.append)
    assert {row["item"]: row["success"] for row in rows} == {"broken": 0.0, plain.id: 1.0}
    assert messages[-1] == "1 of 2 runs of items could not be judged: broken"
    assert [row["answer"].startswith("not judged: ") for row in rows if row["item"] == "broken"] == [True]
    run = read_run(write_run(tmp_path / "run", suite, settings, rows, {}))
    assert summary(run).endswith("1 of 2 answers could not be judged, by what an agent did or left: broken.")


def test_an_item_without_notes_is_reported_before_anything_runs(tmp_path):
    suite = read_suite(SMOKE)
    lost = suite.items[0].model_copy(update={"world": "nowhere"})
    settings = RunSettings(conditions=("no-memory", "full-memory"), memory="tests.protocols.paired.agents.conftest:Notebook")
    with pytest.raises(LabError, match="world 'nowhere', which has no notes"):
        run_tasks(replace(suite, items=(*suite.items, lost)), settings, "hippo-tiny", tmp_path / "out", Permissions(shell=True), print)
    assert not (tmp_path / "out").exists()


def test_a_tree_is_removed_however_deep_and_links_are_not_followed(quick):
    gold = quick / "gold"
    gold.mkdir()
    (gold / "x").write_text("x")
    top = quick / "tree"
    here = top
    for word in ("", "a" * 200, "b"):
        here = here / word
        here.mkdir(exist_ok=True)
        (here / "link").symlink_to(gold)
        (here / "closed").mkdir(mode=0)
    descriptor = os.open(here, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d" * 100, dir_fd=descriptor)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    remove(top)
    assert not top.exists() and (gold / "x").read_text() == "x"


def test_an_unreadable_file_is_said_and_the_rest_is_kept(tmp_path, monkeypatch):
    (tmp_path / "from").mkdir()
    for name in "abc":
        (tmp_path / "from" / name).write_text(name)
    plain = workspace.open_plain

    def refused(path):
        if path.name == "b":
            raise PermissionError(13, "Permission denied")
        return plain(path)

    monkeypatch.setattr(workspace, "open_plain", refused)
    assert keep(tmp_path / "from", tmp_path / "to") == ["b was not kept: Permission denied"]
    assert names(tmp_path / "to") == ["a", "c"]

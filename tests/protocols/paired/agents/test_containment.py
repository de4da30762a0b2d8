"""Whatever a command does, it is contained: whom it is, what it sees, what it may use, and that nothing of it is left."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents import containment, sandbox_init
from hippo_core.protocols.paired.agents.containment import MEGABYTE, SANDBOX_INIT, Containment
from tests.protocols.paired.agents.conftest import MODES, alive

BOMB = """
import os, time
until = time.time() + 30
while time.time() < until:
    try:
        os.fork()
    except OSError:
        time.sleep(0.05)
"""
DOUBLE_FORK = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(30)
    os._exit(0)
os.wait()
time.sleep(float({stay}))
"""


def test_a_command_is_nobody_and_gains_nothing(box):
    ran = box.run(["sh", "-c", "id -u; id -G; grep -E 'CapEff|CapPrm|NoNewPrivs' /proc/self/status"])
    uid, groups, *status = ran.stdout.decode().split("\n")
    assert int(uid) == box.uid != 0 and groups == str(box.uid)
    assert [line.split()[1].strip("0") for line in status if line] == ["", "", "1"]


def test_it_cannot_write_outside_nor_read_what_is_closed(box, tmp_path):
    (tmp_path / "secret").write_text("gold")
    ran = box.run(["sh", "-c", f"cat {tmp_path}/secret; cat /etc/shadow; touch /usr/pwned /etc/pwned; echo fine > here; cat here"])
    assert ran.stdout == b"fine\n" and not Path("/usr/pwned").exists() and not Path("/etc/pwned").exists()


def test_namespaces_hide_the_machine(box, tmp_path):
    if not box.apart:
        pytest.skip("no namespaces: the files that all may read are seen")
    seen = "import os; print(os.listdir('/home'), os.path.exists('/sys'))"
    ran = box.run([box.python, "-c", seen])
    assert ran.stdout == b"['agent'] False\n"
    ran = box.run(["sh", "-c", f"ls {tmp_path}; ls /proc | grep -c '^[0-9]*$'; cat /proc/net/dev | grep -vc -E 'Inter|face|lo:'"])
    assert int(ran.stdout.split()[0]) < 8 and ran.stdout.split()[1] == b"0"


def test_its_environment_and_home_are_clean(box, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "abc")
    ran = box.run(["sh", "-c", "env; ls -A ~; echo history > ~/.history"])
    assert b"SECRET" not in ran.stdout and b"history" not in ran.stdout
    names = {line.partition("=")[0] for line in ran.stdout.decode().splitlines()}
    assert names <= {"PATH", "LANG", "HOME", "TMPDIR", "USER", "PWD", "SHLVL", "_"}
    assert box.run(["sh", "-c", "ls -A ~"]).stdout == b""


def test_a_timeout_kills_what_a_command_started_also_after_two_forks(box):
    ran = box.run([box.python, "-c", DOUBLE_FORK.format(stay=60)], seconds=0.7)
    assert (ran.status, ran.ended) == (None, "timeout") and "timed out" in ran.why
    assert alive(box.uid) == [] and ran.left == 1


def test_nothing_outlives_a_command_that_ends(box):
    ran = box.run([box.python, "-c", DOUBLE_FORK.format(stay=0)], seconds=10)
    assert (ran.status, ran.left) == (0, 1) and ran.seconds < 5
    assert alive(box.uid) == []


def test_a_fork_bomb_stays_small_and_ends(box):
    box.limits = box.limits.model_copy(update={"resident": None})
    ran = box.run([box.python, "-c", BOMB], seconds=1)
    assert ran.ended == "timeout" and 1 <= ran.left < 40
    assert alive(box.uid) == []


def test_the_total_memory_of_all_processes_is_limited(box):
    ran = box.run([box.python, "-c", "import os,time; os.fork(); held = bytearray(200 << 20); time.sleep(20)"])
    assert ran.ended == "memory" and "memory" in ran.why and alive(box.uid) == []


def test_a_file_has_a_most(box):
    ran = box.run(["sh", "-c", "head -c 20M /dev/zero > big; echo ended $?"])
    assert (box.workspace / "big").stat().st_size == 8 * MEGABYTE and b"ended 0" not in ran.stdout


def test_output_is_cut_in_the_middle_and_the_command_goes_on(box):
    ran = box.run(["sh", "-c", "printf begin; head -c 60M /dev/zero; printf end; head -c 3M /dev/zero >&2; echo done > here"])
    assert ran.status == 0 and len(ran.stdout) < 0.011 * MEGABYTE and (box.workspace / "here").exists()
    assert ran.stdout.startswith(b"begin\0") and ran.stdout.endswith(b"\0end") and b"bytes cut]" in ran.stdout
    kept = 2 * (int(0.01 * MEGABYTE) // 2 * 2)
    assert ran.cut == 63 * MEGABYTE + 8 - kept


def test_a_status_and_bytes_are_those_of_the_command(box):
    assert box.run(["printf", r"a\377\376\000b"]).stdout == b"a\xff\xfe\0b"
    assert box.run(["wc", "-c"], stdin=b"x" * 300_000).stdout.strip() == b"300000"
    assert box.run(["sh", "-c", "exit 7"]).status == 7
    assert box.run(["sh", "-c", "kill -9 $$"]).status == -signal.SIGKILL
    with pytest.raises(LabError, match=r"could not be contained.*no-such"):
        box.run(["/no-such-program"])


@pytest.mark.skipif(not MODES, reason="no containment here")
def test_what_is_contained_dies_with_a_killed_harness():
    code = (
        "from hippo_core.protocols.paired.agents.containment import Containment\n"
        "with Containment.open() as box:\n"
        "    print(box.uid, flush=True)\n"
        "    box.run(['sh', '-c', 'echo x > started; sleep 60'])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    uid = int(process.stdout.readline())
    for _ in range(100):
        if os.geteuid() or subprocess.run(["ps", "-U", str(uid), "-o", "pid="], capture_output=True).stdout:
            break
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert alive(uid) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="tries as another user what root can")
def test_an_ordinary_user_is_contained_by_a_user_namespace(tmp_path):
    """The keeper as nobody, by the system's Python."""
    if not shutil.which("python3", path="/usr/bin"):
        pytest.skip("no Python that all may run")
    call = sandbox_init.KEYCTL.get(platform.machine(), -1)
    script = f"import ctypes; print('keys', [ctypes.CDLL(None).syscall({call} - back, 0, -3, 0) for back in range(3)])"
    with Containment.open(mode="user-namespaces") as box:
        command = ["sh", "-c", 'id -u; ls /; touch /usr/pwned; $0 -c "$1"; sleep 60 & exit 3', "/usr/bin/python3", script]
        spec = box.spec(command, "", "/home/agent", {}, 5, None)
    own = Path("/tmp") / f"hippo-test-{os.getpid()}"
    try:
        (own / "work").mkdir(parents=True)
        (own / "root").mkdir()
        shutil.copy(SANDBOX_INIT, own)
        for path in (own, own / "work", own / "root"):
            os.chown(path, 65534, 65534)
        spec["root"] = str(own / "root")
        spec["binds"] = [bind for bind in spec["binds"] if bind[1].count("/") == 1 and bind[1] != "/workspace"]
        spec["binds"].append((str(own / "work"), "/workspace", True))
        (spec_from, spec_to), (report_from, report_to) = os.pipe(), os.pipe()
        os.write(spec_to, json.dumps(spec).encode())
        os.close(spec_to)
        command = ["/usr/bin/python3", "-I", "-S", str(own / "sandbox_init.py"), str(spec_from), str(report_to)]
        around = {"user": 65534, "group": 65534, "extra_groups": [], "pass_fds": (spec_from, report_to), "cwd": "/"}
        ran = subprocess.run(command, capture_output=True, text=True, timeout=20, **around)
        os.close(report_to)
        with os.fdopen(report_from) as file:
            report = json.loads(file.readline())
    finally:
        shutil.rmtree(own, ignore_errors=True)
    if "error" in report and "unshare" in report["error"]:
        pytest.skip("user namespaces are refused here")
    assert (report.get("status"), report.get("left")) == (3, 1), (report, ran)
    assert ran.stdout.split()[0] == str(spec["uid"]) and "workspace" in ran.stdout and "work\n" not in ran.stdout
    assert ran.stdout.endswith("keys [-1, -1, -1]\n")


def test_where_nothing_is_granted_agent_tasks_are_refused_with_the_reasons(monkeypatch):
    refused = {mode: f"no {mode}" for mode in containment.NAMESPACES}
    monkeypatch.setattr(containment, "grants", lambda: refused)
    with pytest.raises(LabError, match=r"refused: .*uid\+namespaces: no uid\+namespaces; .*user-namespaces.*; uid: no uid"):
        containment.best()


def test_a_workspace_that_cannot_be_reached_is_refused(tmp_path):
    if "uid" not in MODES:
        pytest.skip("needs root")
    closed = tmp_path / "closed"
    (closed / "workspace").mkdir(parents=True)
    closed.chmod(0o700)
    with pytest.raises(LabError, match="closed to other users"), Containment.open(closed / "workspace", mode="uid"):
        pass

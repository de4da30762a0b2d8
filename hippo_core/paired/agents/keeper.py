"""Keeps one command contained; run as a script of its own (`python -I -S keeper.py SPEC REPORT`, two descriptors), standard library only.

The keeper enters new namespaces (what the specification asks for), builds a root folder of what the command may see, forks the command as
an unprivileged user under limits, and waits: for its end, its time, or its memory. Then it kills *every* descendant, counts them, and
reports one JSON line. A descendant cannot leave: in a process-id namespace all of it dies with its first process; without one the keeper is
the subreaper to whom orphans come back, and all of the user's processes are killed at once (kill(-1) as that user). prctl(2), unshare(2),
pivot_root(2), kill(2).
"""

import ctypes
import json
import os
import platform
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

CLONE = {"mount": 0x20000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
READ_ONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, RECURSIVE, PRIVATE, DETACH = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18, 2
LOCKED = {2: NOSUID, 4: NODEV, 8: NOEXEC, 1: READ_ONLY, 1024: 1 << 10, 2048: 1 << 11, 4096: 1 << 21}  # statvfs's flag: mount's flag
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
PARENT_DEATH, NO_NEW_PRIVILEGES, SUBREAPER = 1, 38, 36
DEVICES = ("null", "zero", "full", "random", "urandom")
LIMITS = {
    "processes": resource.RLIMIT_NPROC,
    "memory": resource.RLIMIT_AS,
    "file": resource.RLIMIT_FSIZE,
    "cpu": resource.RLIMIT_CPU,
    "open_files": resource.RLIMIT_NOFILE,
}
libc = ctypes.CDLL(None, use_errno=True)


def checked(name: str, *arguments: object) -> None:
    """Call a function of the C library; OSError where it fails."""
    if getattr(libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    try:
        checked("mount", *words, ctypes.c_ulong(flags), os.fsencode(data))
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({kind or 'bind'} {source} on {target})") from None


def enter(namespaces: list[str], uid: int) -> None:
    """New namespaces for this process, and for its children the process ids."""
    outside, group = os.getuid(), os.getgid()
    checked("unshare", ctypes.c_int(sum(CLONE[name] for name in namespaces)))
    if "user" in namespaces:
        Path("/proc/self/uid_map").write_text(f"{uid} {outside} 1")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/gid_map").write_text(f"{uid} {group} 1")


def bind(source: str, target: str, writable: bool) -> None:
    mount(source, target, None, BIND | RECURSIVE)
    held = os.statvfs(target).f_flag
    flags = sum(flag for bit, flag in LOCKED.items() if held & bit)  # what the source is mounted with may not be taken off
    mount(source, target, None, flags | BIND | REMOUNT | NOSUID | NODEV | (0 if writable else READ_ONLY))


def build_root(spec: dict) -> None:
    """A new root folder: the system read-only, a workspace, empty /tmp and home in memory, its own /proc, five devices."""
    root = spec["root"]
    mount("none", "/", None, RECURSIVE | PRIVATE)
    mount("tmpfs", root, "tmpfs", NOSUID | NODEV, "mode=0755,size=4m")
    for path, target in spec["links"]:
        os.symlink(target, root + path)
    for source, target, writable in spec["binds"]:
        os.makedirs(root + target, exist_ok=True)
        bind(source, root + target, writable)
    os.makedirs(root + "/dev/shm")
    for name in DEVICES:
        Path(f"{root}/dev/{name}").touch()
        mount(f"/dev/{name}", f"{root}/dev/{name}", None, BIND)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{root}/dev/{name}")
    for path in ("/tmp", "/dev/shm", spec["home"]):
        os.makedirs(root + path, exist_ok=True)
        mount("tmpfs", root + path, "tmpfs", NOSUID | NODEV, f"mode=0700,uid={spec['uid']},gid={spec['uid']},size={spec['scratch']}")
    os.makedirs(root + "/proc")
    mount("proc", root + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    os.chdir(root)
    checked("syscall", ctypes.c_long(PIVOT_ROOT[platform.machine()]), b".", b".")
    checked("umount2", b".", DETACH)
    os.chdir("/")
    mount("none", "/", None, BIND | REMOUNT | READ_ONLY | NOSUID | NODEV)


def become(spec: dict) -> None:
    """This process as the command: unprivileged, limited, and unable to gain a privilege."""
    os.setsid()
    for name, most in spec["limits"].items():
        if most is not None:
            resource.setrlimit(LIMITS[name], (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "user" not in spec["namespaces"]:
        os.setgroups([])
        os.setresgid(spec["uid"], spec["uid"], spec["uid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    checked("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    checked("prctl", PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    os.umask(0o022)
    os.chdir(spec["cwd"])
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(spec["command"][0], spec["command"], spec["environment"])


def forked(work: Callable[[], None], report: int) -> int:
    """A child that does `work` and never returns; what goes wrong before it is the command is reported."""
    if pid := os.fork():
        return pid
    try:
        work()
    except BaseException as error:
        os.write(report, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
    os._exit(126)


def resident(spec: dict) -> int:
    """Bytes that all of the command's processes hold in memory; pages that they share count for each."""
    pages = 0
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.name != "1" and ("pid" in spec["namespaces"] or entry.stat().st_uid == spec["uid"]):
                pages += int((entry / "statm").read_text().split()[1])
        except (OSError, IndexError):  # it ended meanwhile
            continue
    return pages * resource.getpagesize()


def wait(child: int, spec: dict) -> tuple[int | None, str]:
    """The child's status, None where it did not end by itself, and how it ended: "exit", "timeout" or "memory"."""
    until, looked, pause = time.monotonic() + spec["seconds"], time.monotonic(), 0.002
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return os.waitstatus_to_exitcode(status), "exit"
        now = time.monotonic()
        if now > until:
            return None, "timeout"
        if now - looked > 0.1:
            looked = now
            if spec["resident"] is not None and resident(spec) > spec["resident"]:
                return None, "memory"
        if not pid:
            time.sleep(pause)
            pause = min(2 * pause, 0.02)


def kill_all(spec: dict, report: int) -> int:
    """Kill every descendant and reap it; how many there were."""
    if "pid" in spec["namespaces"]:
        try:
            os.kill(-1, signal.SIGKILL)  # all but this first process of the namespace
        except ProcessLookupError:
            return 0
    else:
        killer = forked(lambda: kill_as(spec["uid"]), report)
        os.waitpid(killer, 0)
    ended = 0
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return ended
        ended += 1


def kill_as(uid: int) -> None:
    """Kill all processes of a user, in one system call; a fork cannot slip through it."""
    os.setresuid(uid, uid, uid)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    os._exit(0)


def keep(spec: dict, report: int) -> None:
    """Run the command, kill what is left, report. Ends the process."""
    checked("prctl", PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    checked("prctl", SUBREAPER, 1, 0, 0, 0)
    if "mount" in spec["namespaces"]:
        build_root(spec)
    began = time.monotonic()
    child = forked(lambda: become(spec), report)
    status, ended = wait(child, spec)
    left = kill_all(spec, report) - (status is None)
    outcome = {"status": status, "ended": ended, "seconds": time.monotonic() - began, "left": left}
    os.write(report, json.dumps(outcome).encode() + b"\n")
    os._exit(0)


def main(spec_from: int, report: int) -> None:
    os.set_inheritable(report, False)
    with os.fdopen(spec_from, "rb") as file:
        spec = json.load(file)
    checked("prctl", PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    if spec["namespaces"]:
        enter(spec["namespaces"], spec["uid"])
    forked(lambda: keep(spec, report), report)
    os.wait()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]))
    except OSError as error:
        os.write(int(sys.argv[2]), json.dumps({"error": str(error)}).encode() + b"\n")

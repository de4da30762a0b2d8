"""Keeps one command contained; run as a script of its own (`python -I -S sandbox_init.py SPEC REPORT`),
standard library only.

The keeper enters new namespaces (what the specification asks for), builds a root folder of what the command may see, forks the command as
an unprivileged user under limits, and waits: for its end, its time, or its memory. Then it kills *every* descendant, counts them, and
reports one JSON line. A descendant cannot leave: in a process-id namespace all of it dies with its first process; without one the keeper is
the subreaper to whom orphans come back, and all of the user's processes are killed at once (kill(-1) as that user), until none is left.
Nothing that a command writes outlives it but in its workspace: Landlock closes all other files, System V IPC objects are removed, POSIX
message queues are not made, and its session keyring is a new one. prctl(2), unshare(2), pivot_root(2), kill(2), landlock(7), keyctl(2).
"""

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
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
KEYCTL, JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219}, 1
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
EXECUTE, WRITE, READ, LIST, TRUNCATE = 1, 2, 4, 8, 1 << 14
SECCOMP, LOAD, JUMP_IF, JUMP_FROM, RETURN, ALLOW, REFUSE = 22, 0x20, 0x15, 0x35, 6, 0x7FFF0000, 0x50000
AUDIT, X32 = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}, 0x40000000
SCOPES = 3  # no abstract sockets and no signals across the edge of the containment
MESSAGE_QUEUES = 12  # RLIMIT_MSGQUEUE, which Python's resource does not name
PATIENCE = 10.0  # seconds that killed processes may take to end
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
    current = os.statvfs(target).f_flag
    flags = sum(flag for bit, flag in LOCKED.items() if current & bit)  # what the source is mounted with may not be taken off
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


def restrict(spec: dict) -> None:
    """Landlock: this process and all that it starts open no other files than the root folder of namespaces would show them."""
    version = libc.syscall(ctypes.c_long(LANDLOCK_CREATE), None, ctypes.c_size_t(0), 1)
    apart = "mount" in spec["namespaces"]
    if version < 1:
        if apart:  # the root folder hides the rest
            return
        raise OSError(errno.ENOSYS, "the kernel has no Landlock (Linux 5.13), so a command could read and write what all users may")
    known = (1 << min(12 + version, 15)) - 1
    readable = EXECUTE | READ | LIST
    rules = [("/", readable)] if apart else []
    rules += [(target if apart else source, known if writable else readable) for source, target, writable in spec["binds"]]
    rules += [(path, known) for path in (spec["home"], *(("/tmp", "/dev/shm") if apart else ()))]
    rules += [(f"/dev/{name}", WRITE | READ | TRUNCATE) for name in (*DEVICES, "tty", "ptmx")]
    rules += [(os.path.realpath("/etc/resolv.conf"), READ), ("/proc", readable | WRITE), ("/dev/pts", WRITE | READ | LIST)]
    ruleset = _landlock(LANDLOCK_CREATE, struct.pack("=QQQ", known, 0, SCOPES if version >= 6 else 0), ctypes.c_size_t(24), 0)
    for path, allowed in rules:
        with suppress(FileNotFoundError):
            beneath = os.open(path, os.O_PATH)
            allowed &= known if os.path.isdir(path) else known & (EXECUTE | WRITE | READ | TRUNCATE)
            _landlock(LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", allowed, beneath), 0)
            os.close(beneath)
    _landlock(LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _landlock(number: int, *arguments: object) -> int:
    if (made := libc.syscall(ctypes.c_long(number), *arguments)) < 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    return made


def new_keyring() -> None:
    """A session keyring of its own; the caller's holds the caller's keys. A machine that refuses keyrings refuses them to commands, too."""
    if libc.syscall(ctypes.c_long(KEYCTL[platform.machine()]), JOIN_SESSION_KEYRING, None) >= 0:
        return
    if (number := ctypes.get_errno()) not in (errno.ENOSYS, errno.EPERM):
        raise OSError(number, f"keyctl: {os.strerror(number)}")


def refuse_keys() -> None:
    """No call for keys at all (seccomp(2)), nor any of another machine's kind: in a user namespace a command is its caller to the kernel,
    so the caller's keyrings are its own."""
    last = KEYCTL[platform.machine()]  # after add_key and request_key
    refused = [(JUMP_FROM, X32), *((JUMP_IF, number) for number in (last - 2, last - 1, last))]
    count = len(refused)
    program = [(LOAD, 0, 0, 4), (JUMP_IF, 0, count + 2, AUDIT[platform.machine()]), (LOAD, 0, 0, 0)]
    program += [(code, count - index, 0, number) for index, (code, number) in enumerate(refused)]
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
    lines = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    checked("prctl", SECCOMP, 2, struct.pack("@HP", len(program), ctypes.addressof(lines)), 0, 0)


def become(spec: dict) -> None:
    """This process as the command: unprivileged, limited, and unable to gain a privilege."""
    os.setsid()
    for name, most in spec["limits"].items():
        if most is not None:
            resource.setrlimit(LIMITS[name], (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "ipc" not in spec["namespaces"]:
        resource.setrlimit(MESSAGE_QUEUES, (0, 0))
    checked("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    restrict(spec)
    if "user" not in spec["namespaces"]:
        os.setgroups([])
        os.setresgid(spec["uid"], spec["uid"], spec["uid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    else:
        refuse_keys()
    new_keyring()
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
    """Kill every descendant and reap it, again and again until none is left or the patience is over; how many there were."""
    ended, until = 0, time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if "pid" in spec["namespaces"]:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # all but this first process of the namespace
        else:
            killer = forked(lambda: kill_as(spec["uid"], spec["killer"]), report)
            os.waitpid(killer, 0)
        soon = time.monotonic() + 0.5
        while time.monotonic() < soon:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return ended
            ended += bool(pid)
            if not pid:
                time.sleep(0.002)
    return ended


def kill_as(uid: int, killer: int) -> None:
    """Kill all processes of a user, in one system call; a fork cannot slip through it. They cannot kill this one, since whom a process may
    signal rests on the other's real and saved id, and here those are nobody else's."""
    os.setresuid(killer, uid, killer)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    os._exit(0)


def alive(spec: dict) -> int:
    """How many processes of the command are left, whoever their parent is."""
    if "pid" in spec["namespaces"]:
        return len([entry for entry in os.listdir("/proc") if entry.isdigit() and entry != "1"])
    count = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError, StopIteration):  # it ended meanwhile
            if entry.name.isdigit():
                ids = next(line for line in (entry / "status").read_text().splitlines() if line.startswith("Uid:"))
                count += str(spec["uid"]) in ids.split()
    return count


def remove_ipc(uid: int) -> None:
    """Remove the System V shared memory, queues and semaphores that a user made."""
    for kind, named, remove in (("shm", "shmid", libc.shmctl), ("msg", "msqid", libc.msgctl), ("sem", "semid", libc.semctl)):
        with suppress(FileNotFoundError):
            head, *lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()
            for line in lines:
                row = dict(zip(head.split(), line.split(), strict=False))
                if str(uid) in (row["uid"], row["cuid"]):
                    remove(int(row[named]), *((0,) if kind == "sem" else ()), 0, None)


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
    if "ipc" not in spec["namespaces"]:
        remove_ipc(spec["uid"])
    outcome = {"status": status, "ended": ended, "seconds": time.monotonic() - began, "left": left, "alive": alive(spec)}
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

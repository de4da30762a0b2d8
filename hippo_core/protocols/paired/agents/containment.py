"""Containment of commands that suites and agents bring: what this machine grants, and one workspace in which commands run by it.

Three modes, best first. `uid+namespaces` (as root): an unprivileged user id of its own, and new mount, process-id, network, IPC and UTS
namespaces; the command sees a root folder that holds the system read-only, its workspace and what is named for it, nothing else.
`user-namespaces` (as anybody): the same, by the kernel's user namespaces. `uid` (as root, where namespaces are refused, as in most
containers): a user id of its own and limits; Landlock shows it the same files, and it can reach the network. All three limit processes,
memory, file sizes and processor time, and kill every descendant when the command ends (sandbox_init). Where none is granted nothing is run.
"""

import json
import os
import pwd
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO, Any, Literal

import psutil

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.workspace import temporary
from hippo_core.protocols.paired.items import Limits

ContainmentMode = Literal["uid+namespaces", "user-namespaces", "uid"]
NAMESPACES: dict[ContainmentMode, tuple[str, ...]] = {
    "uid+namespaces": ("mount", "pid", "net", "ipc", "uts"),
    "user-namespaces": ("user", "mount", "pid", "net", "ipc", "uts"),
    "uid": (),
}
SANDBOX_INIT = Path(__file__).with_name("sandbox_init.py")
SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "opt")
IDS = range(20_000, 60_000)  # user ids that distributions leave free; below what a rootless container maps
PATH = "/usr/local/bin:/usr/bin:/bin"
GRACE = 20.0  # seconds that the keeper itself may take beyond the command's
MEGABYTE = 1 << 20
PIECE = 1 << 16  # bytes that are read at a time


@cache
def grants() -> dict[ContainmentMode, str]:
    """Each mode, tried: why it does not work here; "" where a command ended with 0, as somebody else than root."""
    return {mode: _why_not(mode) for mode in NAMESPACES}


def best() -> ContainmentMode:
    """The best mode that works; LabError, with the reasons, where none does."""
    for mode, why_not in grants().items():
        if not why_not:
            return mode
    why = "; ".join(f"{mode}: {why_not}" for mode, why_not in grants().items())
    remedy = "run as root in a container, or allow user namespaces"
    raise LabError(f"agent tasks are refused: this machine grants no containment ({why}); {remedy}")


def _why_not(mode: ContainmentMode) -> str:
    is_root = os.geteuid() == 0
    if (mode == "user-namespaces") == is_root:
        return "needs an ordinary user: root would stay root on the files outside" if is_root else "needs root"
    try:
        with Containment.open(mode=mode) as box:
            ran = box.run(["/bin/sh", "-c", 'test "$(id -u)" != 0 && touch made'], seconds=10)
        return "" if ran.status == 0 else ran.stderr.decode(errors="replace").strip() or ran.why
    except (LabError, OSError) as error:
        return str(error) or type(error).__name__


@dataclass(frozen=True)
class Captured:
    """What became of a command. `status`: its exit code (minus the signal's number where one killed it), None where it did not end by
    itself. `ended`: why, "exit", "timeout" or "memory". `left`: how many processes outlived it and were killed. `cut`: bytes of both
    streams that are left out, with a note in their place."""

    status: int | None
    ended: str
    seconds: float
    left: int
    stdout: bytes
    stderr: bytes
    cut: int = 0

    @property
    def why(self) -> str:
        """What is wrong with it, in words; empty where it ended with 0."""
        if self.ended == "timeout":
            return f"timed out after {self.seconds:.1f} s; it and all that it started were killed"
        if self.ended == "memory":
            return "its processes together held more memory than allowed; all were killed"
        return f"exit status {self.status}" if self.status else ""


class Bounded:
    """What a command writes, kept within bounds: the first and the last half of `most` bytes, and how many between them were cut."""

    def __init__(self, most: int) -> None:
        self.half, self.total = max(most // 2, 1), 0
        self.first, self.last = bytearray(), bytearray()

    def drain(self, file: IO[bytes]) -> None:
        """Read a pipe to its end, and close it."""
        with file:
            while piece := file.read(PIECE):
                self.total += len(piece)
                free = self.half - len(self.first)
                self.first += piece[:free]
                self.last += piece[free:]
                if len(self.last) > 2 * self.half + PIECE:
                    del self.last[: -self.half]

    @property
    def cut(self) -> int:
        """How many bytes are left out."""
        return self.total - len(self.first) - min(len(self.last), self.half)

    def content(self) -> bytes:
        """The bytes, with a line that says how many are cut."""
        return bytes(self.first) + (b"\n[%d bytes cut]\n" % self.cut if self.cut else b"") + bytes(self.last[-self.half :])


@dataclass
class Containment:
    """One workspace, and commands that run contained in it. `visible`: name -> a file or folder that commands see read-only, at
    `path(name)`. `network` lets them reach it."""

    mode: ContainmentMode
    workspace: Path
    uid: int
    limits: Limits = field(default_factory=Limits)
    visible: Mapping[str, Path] = field(default_factory=dict)
    network: bool = False

    @classmethod
    @contextmanager
    def open(
        cls,
        workspace: Path | None = None,
        mode: ContainmentMode | None = None,
        limits: Limits | None = None,
        visible: Mapping[str, Path] | None = None,
        network: bool = False,
        uid: int | None = None,
    ) -> Iterator["Containment"]:
        """A containment around a workspace, a temporary one unless given; the files are the caller's again when it closes. `uid`: the user
        id of its commands, a free one unless given."""
        chosen = mode or best()
        with ExitStack() as stack:
            folder = workspace or stack.enter_context(temporary("hippo-workspace."))
            box = cls(chosen, folder.resolve(), uid or free_uid(), limits or Limits(), visible or {}, network)
            stack.callback(hand_over, box.workspace, os.geteuid())
            hand_over(box.workspace, owner(chosen, box.uid))
            if not box.apart and (closed := closed_parent(box.workspace)):
                raise LabError(f"{closed} is closed to other users, so a contained command cannot reach {box.workspace}; run elsewhere")
            yield box

    @property
    def apart(self) -> bool:
        """Whether commands see a root folder of their own."""
        return "mount" in NAMESPACES[self.mode]

    @property
    def python(self) -> str:
        """A Python that commands can call, as they see it: this one, less its virtual environment, else the system's."""
        own = Path(os.path.realpath(sys.executable))
        for path in (own, Path("/usr/bin/python3"), Path("/usr/local/bin/python3")):
            if path.exists() and (self.apart or closed_parent(path) is None):
                return str(path)
        raise LabError(f"a contained command finds no Python: {closed_parent(own)} is closed to other users, and /usr/bin has none")

    @property
    def directory(self) -> str:
        """The workspace, as commands see it."""
        return "/workspace" if self.apart else str(self.workspace)

    def path(self, name: str) -> str:
        """Something visible, as commands see it."""
        return f"/{name}" if self.apart else str(self.visible[name].resolve())

    def run(
        self,
        command: Sequence[str],
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        seconds: float = 900.0,
        cwd: str | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> Captured:
        """Run a command to its end or its time; nothing that it started is alive afterwards. `meanwhile` is called again and again until
        then, and should return soon. LabError where the command cannot be contained."""
        own_home = nullcontext() if self.apart else temporary("hippo-home.")
        with tempfile.TemporaryDirectory(prefix="hippo-root.") as root, tempfile.TemporaryFile() as given, own_home as home:
            given.write(stdin)
            given.seek(0)
            if home:
                os.chown(home, self.uid, self.uid)
            spec = self.spec(command, root, str(home or "/home/agent"), environment or {}, seconds, cwd)
            return _kept(spec, given.fileno(), int(self.limits.output * MEGABYTE), meanwhile)

    def spec(
        self, command: Sequence[str], root: str, home: str, environment: Mapping[str, str], seconds: float, cwd: str | None
    ) -> dict[str, Any]:
        """What the keeper needs to know, as JSON."""
        limits = self.limits.model_dump()
        names = [name for name in NAMESPACES[self.mode] if not (self.network and name == "net")]
        links, binds = _system()
        binds += [(str(path.resolve()), f"/{name}", False) for name, path in self.visible.items()]
        binds.append((str(self.workspace), "/workspace", True))
        around = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": "/tmp" if self.apart else home, "USER": "agent", **environment}
        bytes_of = {name: limits[name] and limits[name] * MEGABYTE for name in ("memory", "file")}
        return {
            "command": list(command),
            "environment": around,
            "cwd": cwd or self.directory,
            "namespaces": names,
            "uid": self.uid,
            "killer": free_uid(self.uid),
            "root": root,
            "home": home,
            "links": links,
            "binds": binds,
            "scratch": self.limits.scratch * MEGABYTE,
            "seconds": seconds,
            "resident": limits["resident"] and limits["resident"] * MEGABYTE,
            "limits": {name: limits[name] for name in ("cpu", "processes", "open_files")} | bytes_of,
        }


def _system() -> tuple[list[tuple[str, str]], list[tuple[str, str, bool]]]:
    """The system's folders: links as links, folders read-only; and this Python's own, where it is elsewhere."""
    links, binds = [], []
    for path in (Path("/", name) for name in SYSTEM):
        if path.is_symlink():
            links.append((str(path), os.readlink(path)))
        elif path.is_dir():
            binds.append((str(path), str(path), False))
    if not any(Path(sys.base_prefix).is_relative_to(f"/{name}") for name in SYSTEM):
        binds.append((sys.base_prefix, sys.base_prefix, False))
    return links, binds


def _kept(spec: Mapping[str, Any], stdin: int, most: int, meanwhile: Callable[[], object] | None) -> Captured:
    out, err = Bounded(most), Bounded(most)
    with tempfile.TemporaryFile() as spec_file, open(os.memfd_create("report"), "rb") as report:
        spec_file.write(json.dumps(spec).encode())
        spec_file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SANDBOX_INIT), str(spec_file.fileno()), str(report.fileno())],
            bufsize=0,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(spec_file.fileno(), report.fileno()),
            env={},
            cwd="/",
            start_new_session=True,
        )
        streams = ((out, process.stdout), (err, process.stderr))
        readers = [Thread(target=stream.drain, args=(file,), daemon=True) for stream, file in streams]
        for reader in readers:
            reader.start()
        try:
            until = time.monotonic() + spec["seconds"] + GRACE
            while meanwhile and process.poll() is None and time.monotonic() < until:
                meanwhile()
            process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            left = _left_alive(spec) or "nothing of it is alive"
            raise LabError(f"the keeper of a contained command did not end in its time and was killed; {left}") from None
        finally:
            process.kill()
            process.wait()
        for reader in readers:
            reader.join(GRACE)
        lines = os.pread(report.fileno(), MEGABYTE, 0).decode(errors="replace").splitlines()
    nothing = {"error": err.content().decode(errors="replace").strip() or "it said nothing"}
    outcome: dict[str, Any] = json.loads(lines[0]) if lines else nothing
    if "error" in outcome:
        raise LabError(f"a command could not be contained: {outcome['error']}")
    if outcome.pop("alive") and (left := _left_alive(spec)):
        raise LabError(f"a contained command was killed; {left}")
    return Captured(**outcome, stdout=out.content(), stderr=err.content(), cut=out.cut + err.cut)


def _left_alive(spec: Mapping[str, Any]) -> str:
    """What is left of a command after its end, in words, or nothing. A namespace of processes dies with the keeper, a user's do not."""
    until = time.monotonic() + 2
    while not spec["namespaces"]:
        left = [process.pid for process in psutil.process_iter(["uids"]) if spec["uid"] in (process.info["uids"] or ())]
        if not left:
            break
        if time.monotonic() > until:
            return f"processes {', '.join(map(str, left[:5]))} of user {spec['uid']} are still alive: end them by hand"
        time.sleep(0.05)
    return ""


def free_uid(besides: int = 0) -> int:
    """A user id that no account and no process has; its own, so that the limit of processes counts this containment's only. `besides`: one
    that it must not be either."""
    used = {besides} | {account.pw_uid for account in pwd.getpwall()}
    used |= {uid for process in psutil.process_iter(["uids"]) for uid in process.info["uids"] or ()}
    return random.SystemRandom().choice([uid for uid in IDS if uid not in used])


def owner(mode: ContainmentMode, uid: int) -> int:
    """Whose the workspace must be, as this process sees it, while commands of user `uid` run."""
    return os.geteuid() if mode == "user-namespaces" else uid


def hand_over(folder: Path, uid: int) -> None:
    """Give a folder and what is in it to a user; links are given, not followed. Nothing happens where this process is not root."""
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "-h", f"{uid}:{uid}", "--", str(folder)], check=True, capture_output=True)


def closed_parent(path: Path) -> Path | None:
    """The folder above a path that other users may not pass; None where there is none."""
    return next((parent for parent in path.parents if not parent.stat().st_mode & 0o001), None)

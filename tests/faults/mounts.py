"""Real mounts without privileges: a process in a user and mount namespace of its own, in which a lab's commands can be run too."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(*commands):
    """A namespace in which these shell commands have mounted something: words to run commands in it, and its root as seen from here.

    The test is skipped where a system allows no such namespaces.
    """
    script = " && ".join([*commands, "echo ready", "exec cat"])  # cat ends when its input is closed
    pipe = subprocess.PIPE
    namespace = subprocess.Popen(["unshare", "-rm", "sh", "-c", script], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    if namespace.stdout.readline() != "ready\n":
        pytest.skip(f"no private mounts here: {namespace.communicate(timeout=60)[1].strip()}")
    try:
        yield ("nsenter", f"--target={namespace.pid}", "--user", "--mount", "--preserve-credentials"), Path(f"/proc/{namespace.pid}/root")
    finally:
        namespace.communicate(timeout=60)


def small_disk(mount_point, kilobytes):
    """The command that mounts an empty disk of this size."""
    return f"mkdir -p {mount_point} && mount -t tmpfs -o size={kilobytes}k tmpfs {mount_point}"


def read_only(mount_point):
    """The command by which a folder can be written to no more, by root neither."""
    return f"mkdir -p {mount_point} && mount --bind {mount_point} {mount_point} && mount -o remount,bind,ro {mount_point}"


def fill(folder, leave=0):
    """Fill the disk of a folder but for so many kilobytes; removing the file that is returned frees it."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as out:
        try:
            while True:
                out.write(bytes(4096))
        except OSError:
            out.truncate(max(0, out.tell() - 1024 * leave))
    return ballast


def size(folder):
    """The kilobytes that the files of a folder take on a disk."""
    return sum(-(-path.stat().st_size // 4096) * 4 for path in folder.rglob("*") if path.is_file())

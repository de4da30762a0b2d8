"""A workspace: a fixture's copy, and safe reading, keeping and removing of what an agent left in it.

What an agent leaves may be anything: a link to a file outside, a pipe that nobody writes, a file without end, folders thousands deep. So
nothing is followed (O_NOFOLLOW), only plain files are read, no more of one than `MOST`, and no recursion walks or removes folders.
"""

import errno
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from hippo_core.errors import LabError
from hippo_core.protocols.paired.items import leaves
from hippo_core.protocols.paired.suite import within

MOST = 8 << 20  # bytes of a file that an assertion reads
MOST_NAMES = 100_000  # files and folders of a workspace
LONGEST = 3000  # bytes of a path below it; with the workspace's own path it stays below the system's 4,096
DEEPEST = 200  # folders within folders; what is kept must be removable by any program, and many of them recurse
PIECE = 1 << 20


def relative(path: str) -> PurePosixPath:
    """A path below a workspace; LabError where it is absolute, or leads out of it."""
    if leaves(path):
        raise LabError(f"file: {path!r} is no path below a workspace; expected a relative one, without '..'")
    return PurePosixPath(path)


def check_fixture(fixture: Path) -> None:
    """LabError where a fixture holds anything but folders and plain files, or is a link itself."""
    if fixture.is_symlink() or not fixture.is_dir():
        raise LabError(f"the fixture {fixture} is no folder{', but a link' if fixture.is_symlink() else ''}")
    for parent, folders, files in os.walk(fixture):
        for path in (Path(parent, name) for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                raise LabError(f"the fixture holds a link: {path}; put the file itself there")
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise LabError(f"the fixture holds {path}, which is no plain file")
            if stat.S_ISREG(mode) and path.lstat().st_nlink > 1:
                raise LabError(f"the fixture holds a hard link: {path}; copy the file there")


def fresh_copy(root: Path, name: str, workspace: Path) -> None:
    """Copy the fixture `name` of the suite folder `root` to a new workspace."""
    fixture = within(root.resolve(), name)
    check_fixture(fixture)
    shutil.copytree(fixture, workspace, symlinks=True, copy_function=shutil.copyfile)
    for parent, _, files in os.walk(workspace):
        os.chmod(parent, 0o755)
        for file in files:
            executable = Path(fixture, os.path.relpath(parent, workspace), file).stat().st_mode & 0o111
            os.chmod(Path(parent, file), 0o755 if executable else 0o644)


def read(workspace: Path, path: str) -> bytes:
    """The bytes of a plain file of a workspace. LabError says why where there is none, or a link leads to it."""
    opened = [os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        *folders, name = relative(path).parts
        for folder in folders:
            opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        opened.append(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened[-1]))
        status = os.fstat(opened[-1])
        if not stat.S_ISREG(status.st_mode):
            raise LabError(f"{path} is no plain file")
        if status.st_size > MOST:
            raise LabError(f"{path} has {status.st_size} bytes; at most {MOST} are read")
        with os.fdopen(os.dup(opened[-1]), "rb") as file:
            return file.read(MOST)
    except FileNotFoundError:
        raise LabError(f"no file {path}") from None
    except OSError as error:
        reason = "a link, or a link leads to it" if error.errno in (40, 20) else error.strerror
        raise LabError(f"{path} is not read: {reason}") from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def shown(path: str) -> str:
    """A path as a note or JSON can hold it: bytes that are no UTF-8, and control characters, escaped."""
    return path if path.isprintable() else path.encode("unicode_escape", errors="backslashreplace").decode()


def walk(workspace: Path) -> Iterator[tuple[str, os.stat_result]]:
    """All paths of a workspace, relative, a folder before what is in it; links are listed, not followed. What its owner may not read is
    opened to the owner. LabError where there are too many, or one is too long or too deep."""
    waiting, count = [""], 0
    while waiting:
        below = waiting.pop()
        for name in sorted(os.listdir(workspace / below)):
            path = f"{below}/{name}" if below else name
            count += 1
            if count > MOST_NAMES:
                raise LabError(f"the agent left more than {MOST_NAMES} files and folders")
            if path.count("/") > DEEPEST:
                raise LabError(f"the agent left folders more than {DEEPEST} deep")
            if len(os.fsencode(path)) > LONGEST:
                raise LabError(f"the agent left a path of more than {LONGEST} bytes")
            status = os.lstat(workspace / path)
            folder = stat.S_ISDIR(status.st_mode)
            needed = 0o700 if folder else 0o400 if stat.S_ISREG(status.st_mode) else 0
            if os.geteuid() and status.st_mode & needed != needed:  # root reads all
                os.chmod(workspace / path, stat.S_IMODE(status.st_mode) | needed)
            yield path, status
            if folder:
                waiting.append(path)


def names(workspace: Path) -> list[str]:
    """All paths of a workspace, relative; links are listed, not followed."""
    return sorted(path for path, _ in walk(workspace))


def pieces(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """What a file holds, piece by piece, each with its position. What lies between is a hole, which takes no space and reads as zeros."""
    descriptor, end = file.fileno(), 0
    while end < os.fstat(descriptor).st_size:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole to the end
                return
            raise
        end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        while begin < end and (piece := os.pread(descriptor, min(PIECE, end - begin), begin)):
            yield begin, piece
            begin += len(piece)


def open_plain(path: Path) -> BinaryIO:
    """A file for reading, if no link leads there; a pipe does not wait."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def keep(workspace: Path, target: Path, besides: Collection[str] = ()) -> list[str]:
    """Copy folders, links as links, and plain files with their holes to a new folder; pipes and sockets stay out, and paths `besides` with
    what is in them. What could not be kept, in words."""
    target.mkdir(parents=True)
    left, out = [], set(besides)
    for path, status in walk(workspace):
        if path in out or os.path.dirname(path) in out:
            out.add(path)
            continue
        try:
            if stat.S_ISDIR(status.st_mode):
                (target / path).mkdir()
            elif stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(workspace / path), target / path)
            elif stat.S_ISREG(status.st_mode):
                _copy(workspace / path, target / path)
        except OSError as error:
            out.add(path)
            left.append(f"{shown(path)} was not kept: {error.strerror}")
    return left


def _copy(source: Path, target: Path) -> None:
    with open_plain(source) as given, target.open("xb") as copied:
        for begin, piece in pieces(given):
            copied.seek(begin)
            copied.write(piece)
        copied.truncate(os.fstat(given.fileno()).st_size)


@contextmanager
def temporary(prefix: str) -> Iterator[Path]:
    """A temporary folder; at the end it goes with whatever is in it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder, however deep, and what its owner may not enter. Links are not followed."""
    if os.geteuid():  # root enters all
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], capture_output=True)
    removal = subprocess.run(["rm", "-rf", "--", str(folder)], capture_output=True, text=True, errors="replace")
    if removal.returncode:
        raise LabError(f"{folder} cannot be removed: {removal.stderr}")

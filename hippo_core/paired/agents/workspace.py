"""A workspace: a fixture's copy, and safe reading of what an agent left in it.

What an agent leaves may be anything: a link to a file outside, a pipe that nobody writes, a file without end. So nothing is followed
(O_NOFOLLOW at each step of a path), only plain files are read, and no more of one than `MOST`.
"""

import os
import shutil
import stat
from pathlib import Path, PurePosixPath

from hippo_core.files import LabError

MOST = 8 << 20  # bytes of a file that an assertion reads


def relative(path: str, what: str) -> PurePosixPath:
    """A path below a workspace; LabError where it is absolute, or leads out of it."""
    parts = PurePosixPath(path)
    if not path or "\0" in path or parts.is_absolute() or ".." in parts.parts or parts == PurePosixPath("."):
        raise LabError(f"{what}: {path!r} is no path below a workspace; expected a relative one, without '..'")
    return parts


def check_fixture(fixture: Path) -> None:
    """LabError where a fixture holds anything but folders and plain files, or is a link itself."""
    if fixture.is_symlink() or not fixture.is_dir():
        raise LabError(f"the fixture {fixture} is no folder{', but a link' if fixture.is_symlink() else ''}")
    for place, folders, files in os.walk(fixture):
        for path in (Path(place, name) for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                raise LabError(f"the fixture holds a link: {path}; put the file itself there")
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise LabError(f"the fixture holds {path}, which is no plain file")
            if stat.S_ISREG(mode) and path.lstat().st_nlink > 1:
                raise LabError(f"the fixture holds a hard link: {path}; copy the file there")


def fresh_copy(root: Path, name: str, workspace: Path) -> None:
    """Copy the fixture `name` of the suite folder `root` to a new workspace."""
    fixture = root.resolve()
    for part in relative(name, "fixture").parts:
        fixture /= part
        if fixture.is_symlink():
            raise LabError(f"the fixture {name!r} leads through a link, {fixture}; put the folder itself there")
    check_fixture(fixture)
    shutil.copytree(fixture, workspace, symlinks=True, copy_function=shutil.copyfile)
    for place, _, files in os.walk(workspace):
        os.chmod(place, 0o755)
        for file in files:
            executable = Path(fixture, os.path.relpath(place, workspace), file).stat().st_mode & 0o111
            os.chmod(Path(place, file), 0o755 if executable else 0o644)


def read(workspace: Path, path: str) -> bytes:
    """The bytes of a plain file of a workspace. LabError says why where there is none, or a link leads to it."""
    opened = [os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        *folders, name = relative(path, "file").parts
        for folder in folders:
            opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        opened.append(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened[-1]))
        found = os.fstat(opened[-1])
        if not stat.S_ISREG(found.st_mode):
            raise LabError(f"{path} is no plain file")
        if found.st_size > MOST:
            raise LabError(f"{path} has {found.st_size} bytes; at most {MOST} are read")
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


def names(workspace: Path) -> list[str]:
    """All paths of a workspace, relative; links are listed, not followed."""
    return sorted(
        os.path.relpath(os.path.join(place, name), workspace) for place, folders, files in os.walk(workspace) for name in (*folders, *files)
    )

"""What a process that runs kernels arranges for them: a folder for all that is temporary, as many open files as it may have, quiet.

In that folder are connection files, sockets and what notebooks put where temporary files go. It goes when the process ends, and what a
killed process left goes when the next one begins, or at its end, where a kernel was still dying in it.
"""

import atexit
import logging
import os
import resource
import shutil
import tempfile
import threading
from pathlib import Path

from hippo_core.files import locked_folder, remove_left

PREFIX = "hippo-kernels."
MAX_LENGTH = 60  # characters of the folder that ours is made in: the path of a socket has some 100
FILES = 65536  # a kernel takes some 40 of its runner, and 1024 in all is what many systems start a process with
_made: list[Path] = []
_making = threading.Lock()


def arrange() -> None:
    """From now on what is temporary, here and in kernels, goes to this process's folder, as many files may be open as allowed, and
    papermill's log stays out of the terminal: the lab itself says what went wrong."""
    logging.getLogger("papermill").handlers = [logging.NullHandler()]
    path = str(folder())
    os.environ["TMPDIR"] = tempfile.tempdir = path
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(hard, FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def folder() -> Path:
    """The folder of this process for its kernels, made when it is first asked for."""
    with _making:
        if not _made:
            usual = tempfile.gettempdir()
            _made.append(locked_folder(Path(usual if len(usual) <= MAX_LENGTH else "/tmp"), PREFIX)[0])
        return _made[0]


@atexit.register
def _remove() -> None:
    for path in _made:
        shutil.rmtree(path, ignore_errors=True)
        remove_left(path.parent, PREFIX)

"""`hippo`, or `python -m hippo_core`: the lab's command line. A mistake of the user's ends it with one line and exit code 2."""

import errno
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

if missing := [name for name in ("yaml", "typer", "rich", "torch") if find_spec(name) is None]:
    installed = Path(__file__).with_name("shipped").is_dir()  # from a wheel
    setup = "run .venv/bin/hippo ... from the repository's root (`make setup` makes it)"
    remedy = "install the wheel with its extra, as hippo-core[lab]; without it there are the kernels alone" if installed else setup
    print(f"{sys.executable} has no {missing[0]}: {remedy}", file=sys.stderr)
    sys.exit(2)

from typer import Abort
from typer._click.exceptions import ClickException, NoArgsIsHelpError  # typer brings its own click; its version is pinned

from hippo_core.errors import LabError
from hippo_core.files import FULL, Terminated, has_checkout, home
from hippo_core.text import printable

FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


def main() -> None:
    """Run the command line; turn a mistake, a full disk, one that may not be written to, Ctrl-C and SIGTERM into one line each."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        from hippo_core.lab.cli.commands import app

        sys.exit(app(standalone_mode=False) or 0)
    except (KeyboardInterrupt, Abort):
        sys.exit(_fail("stopped before anything ran", 130))
    except NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except ClickException as error:
        context = getattr(error, "ctx", None)
        help_at = f"; {context.command_path} --help says what is expected" if context else ""
        sys.exit(_fail(f"{' '.join(error.format_message().split()).removesuffix('.')}{help_at}", error.exit_code))
    except LabError as error:
        sys.exit(_fail(str(error), 2))
    except Terminated:
        sys.exit(_fail("stopped (SIGTERM); what is finished is kept, call again to go on", 143))
    except OSError as error:
        path = error.filename or "a file"
        if error.errno in FULL:
            sys.exit(_fail(f"the disk is full (while writing {path}); free some space and call again", 2))
        if error.errno in FORBIDDEN:
            why = os.strerror(error.errno).lower()
            must = "executed/, reports/ and data/generated/" if has_checkout() else str(home())
            sys.exit(_fail(f"no access to {path} ({why}); {must} must be writable: mend that, or point HIPPO_ROOT at a copy of the lab", 2))
        sys.exit(_fail(f"{path}: {os.strerror(error.errno).lower() if error.errno else error}", 2))


def _terminated(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what follows is to end in peace
    raise Terminated(143)


def _fail(message: str, code: int) -> int:
    print(printable(message), file=sys.stderr)  # it may quote another's text
    return code


if __name__ == "__main__":
    main()

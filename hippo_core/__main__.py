"""`python -m hippo_core`: the lab's command line. A mistake of the user's ends it with one line and exit code 2."""

import errno
import sys

from hippo_core.files import LabError


def main() -> None:
    """Run the command line; turn a mistake, a full disk and Ctrl-C into one line each."""
    try:
        from hippo_core.lab.command import app

        app()
    except KeyboardInterrupt:
        sys.exit(_say("stopped before anything ran", 130))
    except LabError as error:
        sys.exit(_say(str(error), 2))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.exit(_say(f"the disk is full (while writing {error.filename or 'a file'}); free some space and call again", 2))


def _say(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code


if __name__ == "__main__":
    main()

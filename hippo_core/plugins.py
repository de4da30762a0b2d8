"""What a name of the form `package.module:NAME` stands for: a method, a suite, an experiment or a delivery of one's own.

The module is any that can be imported, or lies in the lab's root (from a wheel: in its home).
"""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import home


def is_path(name: str) -> bool:
    """Whether a name has the form of a module path."""
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


def imported(path: str, what: str) -> Any:
    """What the module path names; LabError, beginning with `what`, where there is no such module, or no such name in it."""
    if not is_path(path):
        raise LabError(f"{what}: expected package.module:NAME, got {path!r}")
    module, _, attribute = path.partition(":")
    _see_home()
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(error.name, what) from None
    if not hasattr(loaded, attribute):
        raise LabError(f"{what}: module {module} has no {attribute!r}")
    return getattr(loaded, attribute)


def late(path: str) -> Callable[..., Any]:
    """The function that a module path names; its module is imported when it is first called."""
    return lambda *arguments: imported(path, path)(*arguments)


def located(path: str, what: str) -> str:
    """The module of a module path, which is looked for and not run; LabError, beginning with `what`, where it is not there."""
    module = path.partition(":")[0]
    _see_home()
    try:
        there = find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # of a package that it lies in; of a program's main module
        there = False
    if not there:
        raise _missing(module, what)
    return module


def _see_home() -> None:
    if str(home()) not in sys.path:
        sys.path.append(str(home()))


def _missing(module: str | None, what: str) -> LabError:
    return LabError(f"{what}: there is no module {module!r}; install its package, or put its folder into {home()}")

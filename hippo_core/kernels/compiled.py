"""Numba's compiler as the kernels use it: without Python's global lock, the machine code kept on disk where there is a place for it.

What is kept is renewed when the file of the function changes, not when another file does: compiled functions call only their own file's.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable)


def compiled(function: Function) -> Function:
    """The function, compiled when it is first called with arguments of some types."""
    return _compile(function, fastmath=False)


def reordered(function: Function) -> Function:
    """The same for sums of floats that may be added up in any order, which is what makes them fast."""
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def _compile(function: Any, fastmath: bool | set[str]) -> Any:
    settings = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written: compiled anew in each process
        return numba.njit(**settings)(function)

"""The hippocampal memory lab: kernels, memories, models, suites, methods, deliveries, protocols, results and the lab that runs them.

`hippo_core.Memory` is for programs of one's own; it is imported when it is first named, and torch with it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hippo_core.live import LiveMemory as Memory

__version__ = "0.1.0"
__all__ = ["Memory"]


def __getattr__(name: str) -> Any:
    if name == "Memory":
        try:
            return import_module("hippo_core.live").LiveMemory
        except ModuleNotFoundError as error:
            raise ImportError(
                f"hippo_core.Memory needs {error.name}: install hippo-core[lab]; without it there are the kernels alone"
            ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

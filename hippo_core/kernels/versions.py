"""The versions of a kernel: the caller names one, and one that cannot run here raises, naming those that can."""

import os
from importlib import import_module
from types import ModuleType

import torch

from hippo_core.errors import LabError, unknown

IMPLS = ("reference", "cpu", "triton")


def version(kernel: str, impl: str, device: torch.device) -> ModuleType:
    """The module of a kernel's version for tensors on this device, imported when it is first asked for.

    LabError for a name that is none, and for a version that cannot run on these tensors: nothing takes its place.
    """
    if impl not in IMPLS:
        raise unknown("impl", impl, IMPLS)
    loaded = _load(kernel, impl, device)
    if isinstance(loaded, str):
        raise LabError(f"{kernel}: impl {impl!r} cannot run here: {loaded}; available: {', '.join(available(kernel, device))}")
    return loaded


def available(kernel: str, device: torch.device) -> list[str]:
    """The names of a kernel's versions that can run on tensors of this device."""
    return [impl for impl in IMPLS if isinstance(_load(kernel, impl, device), ModuleType)]


def _load(kernel: str, impl: str, device: torch.device) -> ModuleType | str:
    """The module, or why it cannot run."""
    if impl == "cpu" and device.type != "cpu":
        return f"it takes tensors on the CPU, these are on {device}"
    if impl == "triton" and device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"it takes tensors on a GPU, these are on {device}, and Triton's interpreter is not asked for (TRITON_INTERPRET=1)"
    try:
        return import_module(f"hippo_core.kernels.{kernel}.{impl}")
    except ImportError as error:
        return str(error)

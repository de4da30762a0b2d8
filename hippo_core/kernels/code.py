"""What kernels share: a sparse code, and the versions of a kernel. The caller names one, and one that cannot run here raises, naming those
that can."""

import os
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from hippo_core.errors import LabError, unknown

WEIGHTS = (torch.int8, torch.int16)


class Code(NamedTuple):
    """N rows of at most K winners. Kernels that read a code do not rest on the order: a negative index counts for nothing, and weights of
    an index that stands twice add up."""

    indices: Tensor  # int32 [N, K]: dimensions, ascending, -1 behind a row's last
    values: Tensor  # int8 or int16 [N, K]: weights, 0 there


def check_code(code: Code, what: str) -> None:
    """LabError where the tensors are not a code's: their shapes, dtypes, or devices."""
    indices, values = code
    if indices.ndim != 2 or indices.shape != values.shape:
        raise LabError(f"{what}: indices and values must have one shape [N, K], got {[*indices.shape]} and {[*values.shape]}")
    if indices.dtype != torch.int32 or values.dtype not in WEIGHTS:
        raise LabError(f"{what}: expected int32 indices and int8 or int16 values, got {indices.dtype} and {values.dtype}")
    if indices.device != values.device:
        raise LabError(f"{what}: indices are on {indices.device}, values on {values.device}; move one of them")


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

"""Tensors and facts in one file of safetensors with a SHA-256 that is checked when it is read back."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, write_bytes

SEAL = "seal"


def write(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> None:
    """Write both atomically."""
    kept = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(kept, {**facts, SEAL: _sum(kept, facts)}))


def read(path: Path, names: set[str], advice: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the facts, which have these names. LabError, which `advice` ends, where anything is not as it was written."""
    try:
        with safe_open(path, "pt") as file:
            facts = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise LabError(f"{path} is damaged ({in_a_line(error)}); {advice}") from None
    seal = facts.pop(SEAL, None)
    if facts.keys() != names or seal != _sum(tensors, facts):
        raise LabError(f"{path} is damaged: its content does not fit its SHA-256; {advice}")
    return tensors, facts


def _sum(tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(facts), sort_keys=True).encode() + save(dict(tensors))).hexdigest()

"""What was fitted for a model and lies beside its weights: NAME.safetensors, and NAME.json that says what it belongs to and seals both.

A LoRA that is merged when a model is loaded (models/adapter.py) is no such part: parts are fitted on the merged model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import load, save
from torch import nn

from hippo_core.errors import LabError
from hippo_core.files import check_seal, read_sealed, require_checkout, root, seal, sha256, write_bytes, write_sealed
from hippo_core.models import adapter as merged
from hippo_core.models.language_model import LanguageModel

Module = TypeVar("Module", bound=nn.Module)
COMMANDS = {
    "key": "make memory",
    "recall": "make memory",
    "adapter": "make base-model-adapter",
    "abstention": "make abstention",
    "confidence": "make confidence",
}  # what fits a part


@dataclass(frozen=True)
class Owner:
    """A model with fitted parts: its name, what it is, and the command that fits parts for it."""

    name: str
    base: Mapping[str, Any]
    command: str


def folder_of(lm: LanguageModel | Owner) -> Path:
    """Where that which was fitted for a model lies."""
    return root() / "data/weights" / (lm.name if isinstance(lm, Owner) else lm.spec.name)


def base_of(lm: LanguageModel | Owner) -> dict[str, Any]:
    """Name and SHA-256 of the weights that a model was loaded from, and of the LoRA that was merged into them, where there is one."""
    if isinstance(lm, Owner):
        return dict(lm.base)
    base: dict[str, Any] = dict(merged.base_identity(lm.spec.path))
    if lm.spec.adapter_path:
        base["merged"] = merged.base_identity(lm.spec.adapter_path / merged.WEIGHTS)["sha256"]
    return base


def save_part(
    lm: LanguageModel | Owner, part: str, values: Mapping[str, Any], module: nn.Module | None = None, folder: Path | None = None
) -> None:
    """Write a part: the module's tensors where it has one, then `values` with what it belongs to and the seal of its tensors."""
    if folder is None:
        require_checkout(f"fitting the {part} of a model")
        folder = folder_of(lm)
    sealed = {}
    if module is not None:
        path = folder / f"{part}.safetensors"
        write_bytes(path, save({name: tensor.detach().contiguous().cpu() for name, tensor in module.state_dict().items()}))
        sealed = {"tensors": seal(path)}
    write_sealed(folder / f"{part}.json", {"base": base_of(lm), **values, **sealed})


def read_part(lm: LanguageModel | Owner, part: str, folder: Path | None = None) -> dict[str, Any]:
    """What a part's JSON says. LabError where there is none, it is not what was written, or it was fitted on other weights."""
    path = (folder or folder_of(lm)) / f"{part}.json"
    if not path.is_file():
        raise LabError(f"model {folder_of(lm).name} has no fitted {part} at {path}; fit one: `{_command(lm, part)}`")
    made = read_sealed(path, f"fit it again: `{_command(lm, part)}`")
    if (own := base_of(lm)) != made.get("base"):
        raise LabError(f"{path} was fitted on {_named(made.get('base'))}, this is {_named(own)}; fit it again: `{_command(lm, part)}`")
    return made


def _command(lm: LanguageModel | Owner, part: str) -> str:
    if isinstance(lm, Owner) and part not in COMMANDS:
        return lm.command
    return f"{COMMANDS[part]} MODEL={folder_of(lm).name}"


def digest_of(lm: LanguageModel | Owner, part: str, folder: Path | None = None) -> str:
    """The first digits of the checksum of a part's tensors."""
    return sha256((folder or folder_of(lm)) / f"{part}.safetensors")[:12]


def load_part(lm: LanguageModel | Owner, part: str, make: Callable[[dict[str, Any]], Module], folder: Path | None = None) -> Module:
    """The module that `make` builds of a part's settings, with the part's tensors, to be used and not trained. LabError where the part is
    missing or damaged, was fitted on other weights, or has other tensors than the module."""
    made, path = read_part(lm, part, folder), (folder or folder_of(lm)) / f"{part}.safetensors"
    again = f"fit it again: `{_command(lm, part)}`"
    check_seal(path, made.get("tensors"), again)
    module, tensors = make(made.get("settings", {})), load(path.read_bytes())
    if fault := merged.mismatch(module.state_dict(), tensors, "expected {}, got {}"):
        raise LabError(f"{path}: {fault}; {again}")
    module.load_state_dict(tensors)
    return module.eval().requires_grad_(False)


def _named(base: Any) -> str:
    if not isinstance(base, dict):
        return "nothing that it names"
    parts = [f"{base.get('name')} ({str(base.get('sha256'))[:12]}...)"]
    return " with a LoRA ".join(parts + ([f"({base['merged'][:12]}...)"] if base.get("merged") else []))

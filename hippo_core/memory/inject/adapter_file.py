"""A trace adapter on disk: adapter.safetensors, and adapter.json that says what it belongs to and how it was made.

Not to be mixed up with a LoRA that is merged into weights when a model is loaded (models/adapter.py): where a model has one, the trace
adapter was fitted on the merged model and belongs to both.
"""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from hippo_core.files import LabError, root, write_bytes, write_json
from hippo_core.memory.inject.trace_adapter import AdapterSettings, TraceAdapter
from hippo_core.models import adapter as merged
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.spec import validated

WEIGHTS, MADE = "adapter.safetensors", "adapter.json"


def folder_of(lm: LanguageModel) -> Path:
    """Where a model's trace adapter lies."""
    return root() / "data/weights" / lm.spec.name


def save_adapter(adapter: TraceAdapter, lm: LanguageModel, folder: Path, made: dict[str, Any]) -> None:
    """Write the adapter's tensors, then its JSON: shape, base and `made` (recipe, command, date, what it reaches)."""
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in adapter.state_dict().items()}
    write_bytes(folder / WEIGHTS, save(tensors))
    write_json(folder / MADE, {"settings": adapter.settings.model_dump(mode="json"), "base": base_of(lm), **made})


def load_adapter(lm: LanguageModel, folder: Path | None = None) -> TraceAdapter:
    """The adapter of a loaded model from `folder` (default: the model's). LabError where there is none, where it was fitted on other
    weights, and where its tensors are not those that its settings ask for."""
    folder = folder or folder_of(lm)
    if not (folder / WEIGHTS).is_file() or not (folder / MADE).is_file():
        way = f"make base-model-adapter MODEL={lm.spec.name}"
        raise LabError(f"inject=adapter: no {WEIGHTS} and {MADE} in {folder}; fit one with `{way}`, or use inject=kv or inject=text")
    made = _read(folder / MADE)
    if (own := base_of(lm)) != made.get("base"):
        raise LabError(f"the trace adapter in {folder} was fitted on {_named(made.get('base'))}, this is {_named(own)}; fit it again")
    adapter = TraceAdapter(lm, validated(AdapterSettings, made.get("settings", {}), str(folder / MADE)))
    _fill(adapter, folder / WEIGHTS)
    return adapter.eval().requires_grad_(False)


def base_of(lm: LanguageModel) -> dict[str, Any]:
    """Name and SHA-256 of the weights that a model was loaded from, and of the LoRA that was merged into them, where there is one."""
    found: dict[str, Any] = dict(merged.base_identity(lm.spec.path))
    if lm.spec.adapter_path:
        found["merged"] = merged.base_identity(lm.spec.adapter_path / merged.WEIGHTS)["sha256"]
    return found


def _fill(adapter: TraceAdapter, path: Path) -> None:
    try:
        tensors = load(path.read_bytes())
    except SafetensorError as error:
        raise LabError(f"{path} is damaged: {error}") from None
    shapes = {name: list(tensor.shape) for name, tensor in adapter.state_dict().items()}
    got = {name: list(tensor.shape) for name, tensor in tensors.items()}
    if wrong := sorted(name for name in shapes.keys() | got.keys() if shapes.get(name) != got.get(name)):
        name = wrong[0]
        raise LabError(f"{path}: for {name} expected {shapes.get(name, 'nothing')}, got {got.get(name, 'nothing')}; fit it again")
    if bad := sorted(name for name, tensor in tensors.items() if not _finite(tensor)):
        raise LabError(f"{path}: {bad[0]} holds numbers that are not finite; fit it again")
    adapter.load_state_dict(tensors)


def _finite(tensor: Tensor) -> bool:
    return bool(tensor.isfinite().all())


def _named(base: Any) -> str:
    if not isinstance(base, dict):
        return "nothing that it names"
    parts = [f"{base.get('name')} ({str(base.get('sha256'))[:12]}...)"]
    return " with a LoRA ".join(parts + ([f"({base['merged'][:12]}...)"] if base.get("merged") else []))


def _read(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise LabError(f"{path} is damaged: expected a JSON object")
    return values

"""A trace adapter on disk, beside what else was fitted for its model (models/artifacts.py)."""

from pathlib import Path
from typing import Any

from hippo_core.delivery.trace_adapter import AdapterSettings, TraceAdapter
from hippo_core.models import artifacts
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.spec import validated

PART = "adapter"


def save_adapter(adapter: TraceAdapter, lm: LanguageModel, folder: Path, made: dict[str, Any]) -> None:
    """Write the adapter's tensors and its JSON: shape, base and `made` (recipe, command, date, what it reaches)."""
    artifacts.save_part(lm, PART, {"settings": adapter.settings.model_dump(mode="json"), **made}, adapter, folder)


def load_adapter(lm: LanguageModel, folder: Path | None = None) -> TraceAdapter:
    """The adapter of a loaded model from `folder` (default: the model's). LabError where there is none, where it was fitted on other
    weights, and where its tensors are not those that its settings ask for."""
    made = artifacts.read_part(lm, PART, folder)
    adapter = TraceAdapter(lm, validated(AdapterSettings, made.get("settings", {}), f"{PART}.json"))
    artifacts.fill(adapter, (folder or artifacts.folder_of(lm)) / f"{PART}.safetensors")
    return adapter.eval().requires_grad_(False)

"""Conditions: what the model is given for an item. A preset names one with its settings; `choose` applies it.

Importing this brings no torch: a grid is planned from presets long before a model is loaded.
"""

from typing import TYPE_CHECKING

from hippo_core.methods.overlay import preset_names
from hippo_core.methods.presets import Preset, condition_presets, is_memory, load_memory, load_preset, origin, settings_of
from hippo_core.methods.table import CONDITIONS
from hippo_core.methods.types import Choice, Condition, Encoder, Regime, Request
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.suites.types import Item, World

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

__all__ = [
    "CONDITIONS",
    "Choice",
    "Condition",
    "Encoder",
    "Preset",
    "Regime",
    "Request",
    "WorldIndex",
    "choose",
    "condition_presets",
    "is_memory",
    "load_memory",
    "load_preset",
    "origin",
    "preset_names",
    "settings_of",
]


def choose(
    preset: Preset, lm: "LanguageModel", world: World, item: Item, regime: Regime = "delayed", index: WorldIndex | None = None
) -> Choice:
    """The facts that `preset` shows for an item. Give one `index` for all items of a world, or it is built anew for each."""
    settings = {name: getattr(preset, name) for name in ("k", "encoder", "candidates", "recency", "decoding")}
    return CONDITIONS[preset.condition].choose(Request(item, regime, **settings, index=index or WorldIndex(lm, world)))

"""A preset: a condition or a memory by name, with its settings, as params/presets holds it."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.files import LabError, unknown
from hippo_core.methods.episodic.settings import MemoryPreset, flat, leaves
from hippo_core.methods.overlay import Overlaid, merged, nested, preset_names, read_preset
from hippo_core.methods.table import CONDITIONS
from hippo_core.methods.types import Decoding, Encoder
from hippo_core.models.spec import validated

MEMORIES = ("hei_nw",)  # conditions that are memories: they are taught first, and read MemoryPreset
FIXED = ("name", "condition")
SOME = ("k", "encoder", "candidates", "recency")  # settings that some conditions read


class Preset(BaseModel):
    """A condition with its settings. Unknown keys are an error, and so is a setting that the condition does not read.

    `decoding` short: chat template and instruction; plain: neither. `k`: how many facts are shown. `encoder`: whose vectors dense
    retrieval compares; own: those of the model that answers, minilm: those of all-MiniLM-L6-v2 (`make models` brings it).
    `candidates`: how many facts are re-ranked. `recency`: how much it counts against a fact that one told later looks like it (recency.py).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    condition: str
    decoding: Decoding = "short"
    k: Annotated[int, Field(ge=1)] | None = None
    encoder: Encoder | None = None
    candidates: Annotated[int, Field(ge=1)] | None = None
    recency: Annotated[float, Field(ge=0)] | None = None

    @property
    def uses_window(self) -> bool:
        """Whether the regime changes what is shown; else both regimes give the same prompts."""
        return CONDITIONS[self.condition].uses_window


def is_memory(name: str) -> bool:
    """Whether this preset is a memory's. LabError where there is none of that name, or its condition is unknown."""
    return _condition(name, read_preset(name)) in MEMORIES


def condition_presets() -> list[str]:
    """The presets that are no memory's."""
    return [name for name in preset_names() if not is_memory(name)]


def settings_of(name: str) -> set[str]:
    """What may be overridden in a preset, by dotted key."""
    return set(leaves() if is_memory(name) else Preset.model_fields) - set(FIXED)


def load_preset(name: str, overrides: Mapping[str, Any] | None = None) -> Preset:
    """The preset of that name with some settings replaced (`{"k": 5}`); LabError on an unknown name, key, condition or value."""
    told = read_preset(name)
    condition = _condition(name, told)
    _refuse_fixed(name, overrides or {})
    if condition in MEMORIES:
        raise LabError(f"preset {name} is a memory's, which is taught before it is asked: python -m hippo_core run memory preset={name}")
    settings = {**CONDITIONS[condition].settings, **told.values, **(overrides or {})}
    preset = validated(Preset, {"name": name, **settings}, f"preset {name}")
    for setting in SOME:
        if setting not in CONDITIONS[condition].settings and getattr(preset, setting) is not None:
            readers = [other for other, one in CONDITIONS.items() if setting in one.settings]
            raise LabError(f"preset {name}: condition {condition} does not read {setting}; those that do: {', '.join(readers)}")
    return preset


def load_memory(name: str, overrides: Mapping[str, Any] | None = None) -> MemoryPreset:
    """The memory of that name with some settings replaced (`{"replay.rate": 0.5}`); LabError as in `load_preset`."""
    told = read_preset(name)
    _refuse_fixed(name, overrides or {})
    if _condition(name, told) not in MEMORIES:
        raise LabError(f"preset {name} is no memory's; run it alone: python -m hippo_core run baseline preset={name}")
    values = merged(told.values, nested(overrides or {}))
    if strange := sorted(flat(values).keys() - leaves()):
        raise unknown(f"setting of preset {name}", strange[0], leaves() - set(FIXED))
    return validated(MemoryPreset, {"name": name, **values}, f"preset {name}")


def origin(name: str) -> str:
    """The preset at the bottom of those that this one extends; its own name where it extends none."""
    return read_preset(name).origin


def _condition(name: str, told: Overlaid) -> str:
    condition = told.values.get("condition")
    if condition not in CONDITIONS and condition not in MEMORIES:
        raise unknown(f"condition of preset {name}", condition, [*CONDITIONS, *MEMORIES])
    return str(condition)


def _refuse_fixed(name: str, overrides: Mapping[str, Any]) -> None:
    if fixed := set(FIXED) & set(overrides):
        raise LabError(f"preset {name}: {', '.join(sorted(fixed))} cannot be replaced; choose another preset")

"""A preset: a condition by name, with its settings, as params/presets holds it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.conditions.table import CONDITIONS
from hippo_core.conditions.types import Encoder
from hippo_core.files import LabError, root, unknown
from hippo_core.models.spec import read_mapping, validated


class Preset(BaseModel):
    """A condition with its settings. Unknown keys are an error, and so is a setting that the condition does not read.

    `decoding` short: chat template and instruction; plain: neither. `k`: how many facts are shown. `encoder`: whose vectors dense
    retrieval compares; own: those of the model that answers, minilm: those of all-MiniLM-L6-v2 (`make models` brings it).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    condition: str
    decoding: Literal["short", "plain"] = "short"
    k: Annotated[int, Field(ge=1)] | None = None
    encoder: Encoder | None = None

    @property
    def uses_window(self) -> bool:
        """Whether the regime changes what is shown; else both regimes give the same prompts."""
        return CONDITIONS[self.condition].uses_window


def preset_names() -> list[str]:
    """All presets of params/presets, such as "baselines/core"."""
    folder = root() / "params" / "presets"
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def load_preset(name: str, overrides: dict[str, Any] | None = None) -> Preset:
    """The preset of that name with some settings replaced (`{"k": 5}`); LabError on an unknown name, key, condition or value."""
    if name not in preset_names():
        raise unknown("preset", name, preset_names())
    values = read_mapping(root() / "params" / "presets" / f"{name}.yaml")
    fixed = {"name", "condition"} & set(overrides or {})
    if fixed:
        raise LabError(f"preset {name}: {', '.join(sorted(fixed))} cannot be replaced; choose another preset")
    if values.get("condition") not in CONDITIONS:
        raise unknown("condition", values.get("condition"), CONDITIONS)
    settings = {**CONDITIONS[values["condition"]].settings, **values, **(overrides or {})}
    preset = validated(Preset, {"name": name, **settings}, f"preset {name}")
    for setting in ("k", "encoder"):
        if setting not in CONDITIONS[preset.condition].settings and getattr(preset, setting) is not None:
            readers = [other for other, condition in CONDITIONS.items() if setting in condition.settings]
            raise LabError(f"preset {name}: condition {preset.condition} does not read {setting}; those that do: {', '.join(readers)}")
    return preset

"""A preset: a method by its module path, with its settings, as params/presets holds it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from hippo_core.delivery import module_of as delivery_module
from hippo_core.files import LabError
from hippo_core.methods.base import Memory, Method, MethodSettings, Mode
from hippo_core.methods.overlay import merged, nested, preset_names, read_preset
from hippo_core.models.spec import validated
from hippo_core.plugins import imported

__all__ = ["Preset", "flat", "leaves", "load_preset", "method_class", "preset_names", "settings_of"]


@dataclass(frozen=True)
class Preset:
    """A method with its settings. `path`: its module path; `origin`: the preset at the bottom of those that this one extends."""

    name: str
    path: str
    method: type[Method]
    settings: MethodSettings
    origin: str

    @property
    def taught(self) -> bool:
        """Whether it is a memory, which is taught in another process than it is asked in."""
        return bool(self.method.stages)

    def of_stage(self, mode: Mode) -> dict[str, Any]:
        """The settings that a stage depends on, by dotted key, as plain values; all of them for a test."""
        values = flat(self.settings.model_dump(mode="json"))
        if mode == "test" or not issubclass(self.method, Memory):
            return values
        later = self.method.asked_with + (self.method.slept_with if mode == "teach" else ())
        return {key: value for key, value in values.items() if not f"{key}.".startswith(tuple(f"{one}." for one in later))}

    def described(self) -> dict[str, Any]:
        """What a record says of it."""
        encoder = getattr(self.settings, "encoder", None)
        return {
            "name": self.name,
            "method": self.path,
            **({"encoder": encoder} if encoder else {}),
            **self.settings.model_dump(mode="json"),
        }


def load_preset(name: str, overrides: Mapping[str, Any] | None = None) -> Preset:
    """The preset of that name with some settings replaced, by dotted key; LabError on an unknown name, method, delivery, key or
    value."""
    overlaid = read_preset(name)
    values = dict(overlaid.values)
    path = values.pop("method", None)
    if not isinstance(path, str):
        raise LabError(
            f"preset {name} names no method; expected `method: package.module:Class`, such as hippo_core.methods.rag.rankers:BM25"
        )
    method = method_class(path, f"preset {name}")
    if "method" in (overrides or {}):
        raise LabError(f"preset {name}: its method cannot be replaced; choose another preset")
    settings = validated(method.Settings, merged(values, nested(overrides or {})), f"preset {name}")
    delivery_module(settings.delivery)
    return Preset(name, path, method, settings, overlaid.origin)


def method_class(path: str, where: str) -> type[Method]:
    """The class that `package.module:Class` names, of this package or of any other."""
    method = imported(path, f"{where}: method")
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise LabError(f"{where}: method {path} is no subclass of hippo_core.methods.base.Method")
    return method


def settings_of(name: str) -> frozenset[str]:
    """What may be overridden in a preset, by dotted key."""
    return leaves(load_preset(name).method.Settings)


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """`{"replay": {"rate": 0.5}}` as `{"replay.rate": 0.5}`."""
    flattened: dict[str, Any] = {}
    for key, value in values.items():
        flattened |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return flattened


@cache
def leaves(settings: type[BaseModel]) -> frozenset[str]:
    """The dotted keys of all settings of a model."""
    return frozenset(_leaves(settings, ""))


def _leaves(model: type[BaseModel], above: str) -> Iterator[str]:
    for name, one in model.model_fields.items():
        kind = one.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _leaves(kind, f"{above}{name}.")
        else:
            yield f"{above}{name}"

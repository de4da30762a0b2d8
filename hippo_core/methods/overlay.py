"""Preset files: keys and values, or the name of another preset (`extends`) and what differs from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hippo_core.files import LabError, root, unknown
from hippo_core.models.spec import read_mapping


@dataclass(frozen=True)
class Overlaid:
    """The values of a preset with those that it extends below them, and the name of the preset at the bottom."""

    values: dict[str, Any]
    origin: str


def preset_names() -> list[str]:
    """All presets of params/presets, such as "baselines/core" and "memory/hei_nw"."""
    folder = root() / "params" / "presets"
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def read_preset(name: str, above: tuple[str, ...] = ()) -> Overlaid:
    """The preset of that name, overlays resolved; `above` are the presets that extend it.

    LabError for an unknown name, for presets that extend each other, and where an overlay names another method than its parent.
    """
    path = root() / "params" / "presets" / f"{name}.yaml"
    if ".." in path.parts or not path.is_file():
        raise unknown(f"preset (which {above[-1]} extends)" if above else "preset", name, preset_names())
    if name in above:
        raise LabError(f"presets extend each other: {' -> '.join([*above, name])}; one of them must stand alone")
    own = read_mapping(path)
    if "extends" not in own:
        return Overlaid(own, name)
    below = read_preset(str(own.pop("extends")), (*above, name))
    if own.get("method", below.values.get("method")) != below.values.get("method"):
        raise LabError(f"preset {name}: an overlay keeps the method of the preset that it extends, which is {below.origin}")
    return Overlaid(merged(below.values, own), below.origin)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `above` over those of `below`; mappings are merged at any depth, all else is replaced."""
    both = {key: merged(below[key], value) if _nested(value, below.get(key)) else value for key, value in above.items()}
    return {**below, **both}


def nested(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """`{"replay.rate": 0.5}` as `{"replay": {"rate": 0.5}}`."""
    whole: dict[str, Any] = {}
    for key, value in overrides.items():
        first, dot, rest = key.partition(".")
        whole = merged(whole, {first: nested({rest: value}) if dot else value})
    return whole


def _nested(*values: object) -> bool:
    return all(isinstance(value, Mapping) for value in values)

"""A preset: a method by its module path, with its settings. A file of params/presets holds keys and values, or the name of another preset
(`extends`) and what differs from it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hippo_core.delivery import module_of as delivery_module
from hippo_core.errors import LabError, unknown
from hippo_core.files import root
from hippo_core.methods.base import Memory, Method, MethodSettings
from hippo_core.models.spec import read_mapping, validated
from hippo_core.plugins import imported


def preset_names() -> list[str]:
    """All presets of params/presets, such as "baselines/core" and "memory/hei_nw"."""
    folder = root() / "params" / "presets"
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def read_preset(name: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """The values of the preset of that name over those that it extends; `above` are the presets that extend it. LabError for an unknown
    name, for presets that extend each other, and where an overlay names another method than its parent."""
    path = root() / "params" / "presets" / f"{name}.yaml"
    if Path(name).is_absolute() or ".." in path.parts or not path.is_file():  # a record may name one, and its file names a method's module
        raise unknown(f"preset (which {above[-1]} extends)" if above else "preset", name, preset_names())
    if name in above:
        raise LabError(f"presets extend each other: {' -> '.join([*above, name])}; one of them must stand alone")
    own = read_mapping(path)
    own.pop("look", None)  # by which nothing is computed
    if "extends" not in own:
        return own
    parent = str(own.pop("extends"))
    below = read_preset(parent, (*above, name))
    if own.get("method", below.get("method")) != below.get("method"):
        raise LabError(f"preset {name}: an overlay keeps the method of the preset that it extends, which is {parent}")
    return merged(below, own)


def styles_of_presets() -> Mapping[str, Mapping[str, Any]]:
    """The styles of presets in figures, from their files, in order: `order`, `label`, `colour`, `marker`, `line` and `hollow`; a preset
    with another encoder as "baselines/rag_dense (minilm)" (`with` in its file)."""
    return _styles_of_presets(root())


@cache
def _styles_of_presets(lab: Path) -> Mapping[str, Mapping[str, Any]]:
    styles: dict[str, Mapping[str, Any]] = {}
    for name in preset_names():
        own: dict[str, Any] = {}
        with suppress(LabError):  # a file that is no preset fails when it is run
            own = dict(read_mapping(lab / "params" / "presets" / f"{name}.yaml").get("look", {}))
        more = own.pop("with", {})
        styles |= ({name: own} if own else {}) | {f"{name} ({mark})": style for mark, style in more.items()}
    return dict(sorted(styles.items(), key=lambda named: named[1].get("order", len(styles))))


def extended(name: str) -> list[str]:
    """The presets that a preset extends, the nearest first. LabError as of `read_preset`."""
    read_preset(name)  # which finds that there are such presets, and that they end
    own = read_mapping(root() / "params" / "presets" / f"{name}.yaml")
    return [below := str(own["extends"]), *extended(below)] if "extends" in own else []


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `above` over those of `below`; mappings are merged at any depth, all else is replaced."""
    inner = {key: value for key, value in above.items() if isinstance(value, Mapping) and isinstance(below.get(key), Mapping)}
    return {**below, **above, **{key: merged(below[key], value) for key, value in inner.items()}}


def nested(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """`{"replay.rate": 0.5}` as `{"replay": {"rate": 0.5}}`."""
    tree: dict[str, Any] = {}
    for key, value in overrides.items():
        first, dot, rest = key.partition(".")
        tree = merged(tree, {first: nested({rest: value}) if dot else value})
    return tree


@dataclass(frozen=True)
class Preset:
    """A method with its settings. `path`: its module path."""

    name: str
    path: str
    method: type[Method]
    settings: MethodSettings

    @property
    def origin(self) -> str:
        """The preset at the bottom of those that it extends."""
        return [self.name, *extended(self.name)][-1]

    @property
    def auto_encoder(self) -> bool:
        """Whether its file leaves it to the machine whose vectors it compares."""
        return read_preset(self.name).get("encoder") == "auto"

    @property
    def taught(self) -> bool:
        """Whether it is a memory, which is taught in another process than it is asked in."""
        return bool(self.method.steps)

    @property
    def parts(self) -> Mapping[str, "Preset"]:
        """Those whose stores its test reads, by name: what a composite puts together, or itself alone, as ""."""
        return self.settings.memories or {"": self}

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of its method and of those that it uses, at any depth."""
        used = [module for preset in self.settings.uses.values() for module in preset.modules]
        return tuple(dict.fromkeys((self.path.partition(":")[0], *used)))

    def of_step(self, step: str) -> dict[str, Any]:
        """The settings that a step depends on, by dotted key, as plain values; all of them for a test, with those of the presets that it
        uses, in order."""
        values = flat(self.settings.model_dump(mode="json"))
        if used := self.settings.uses:
            return values | {"parts": [[name, part.path, part.of_step("test")] for name, part in used.items()]}
        if step == "test" or not issubclass(self.method, Memory):
            return values
        later = self.method.test_settings + (self.method.replay_settings if step == "teach" else ())
        return {key: value for key, value in values.items() if not f"{key}.".startswith(tuple(f"{later_key}." for later_key in later))}

    def described(self) -> dict[str, Any]:
        """What a record says of it."""
        encoder = getattr(self.settings, "encoder", None)
        used = {name: part.described() for name, part in self.settings.uses.items()}
        return {
            "name": self.name,
            "method": self.path,
            **({"encoder": encoder} if encoder else {}),
            **self.settings.model_dump(mode="json"),
            **({"parts": used} if used else {}),
        }


def load_preset(name: str, overrides: Mapping[str, Any] | None = None) -> Preset:
    """The preset of that name with some settings replaced, by dotted key; LabError on an unknown name, method, delivery, key or
    value."""
    values = read_preset(name)
    method, path = method_of(name, values), values.pop("method")
    if "method" in (overrides or {}):
        raise LabError(f"preset {name}: its method cannot be replaced; choose another preset")
    settings = validated(method.Settings, merged(values, nested(overrides or {})), f"preset {name}")
    method = method.with_settings(settings)
    delivery_module(settings.delivery)
    if settings.abstention != "model" and not method.says_confidence:
        needs = f"abstention={settings.abstention} needs a method that says how sure it is"
        raise LabError(f"preset {name}: {needs}, {path} does not; use abstention=model")
    if settings.unknown_below and not method.says_confidence:
        raise LabError(f"preset {name}: unknown_below needs a method that says how sure it is, {path} does not; leave it at 0")
    return Preset(name, path, method, settings)


def method_of(name: str, values: Mapping[str, Any]) -> type[Method]:
    """The class that the values of a preset name."""
    path = values.get("method")
    if not isinstance(path, str):
        raise LabError(
            f"preset {name} names no method; expected `method: package.module:Class`, such as hippo_core.methods.rag.rankers:BM25"
        )
    return method_class(path, f"preset {name}")


def method_class(path: str, where: str) -> type[Method]:
    """The class that `package.module:Class` names, of this package or of any other."""
    method = imported(path, f"{where}: method")
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise LabError(f"{where}: method {path} is no subclass of hippo_core.methods.base.Method")
    return method


def settings_of(name: str) -> frozenset[str]:
    """What may be overridden in a preset, by dotted key; of a setting that is a mapping, each of its keys too."""
    settings = load_preset(name).settings
    return leaves(type(settings)) | flat(settings.model_dump()).keys()


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """`{"replay": {"rate": 0.5}}` as `{"replay.rate": 0.5}`."""
    flattened: dict[str, Any] = {}
    for key, value in values.items():
        flattened |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return flattened


@cache
def leaves(settings: type[BaseModel], above: str = "") -> frozenset[str]:
    """The dotted keys of all settings of a model."""
    keys: frozenset[str] = frozenset()
    for name, field in settings.model_fields.items():
        kind, key = field.annotation, f"{above}{name}"
        keys |= leaves(kind, f"{key}.") if isinstance(kind, type) and issubclass(kind, BaseModel) else {key}
    return keys

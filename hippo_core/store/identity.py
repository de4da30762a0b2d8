"""What a store was written with: a store opens only for the model, the method and the payloads that its traces are of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hippo_core.errors import LabError
from hippo_core.store.codec import Codec, Undecoded

SCHEMA_VERSION = 5


@dataclass(frozen=True)
class Identity:
    """`model` and the checksum of its `weights`; `kind`, the method that writes, and the `codec` of its payloads."""

    model: str
    weights: str
    kind: str
    codec: Codec

    @property
    def algorithm(self) -> str:
        """The name of its folder of stores."""
        return algorithm_of(self.kind)

    @property
    def parts(self) -> dict[str, Any]:
        """All that must be equal."""
        return {"model": self.model, "weights": self.weights, "kind": self.kind, **self.codec.settings}


def algorithm_of(kind: str) -> str:
    """A method's class, named by its module path, as a folder is called: `package.module:HeiNW` gives hei_nw."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.rpartition(":")[2]).lower()


def as_values(identity: Identity) -> dict[str, Any]:
    """For JSON, with the version of the schema."""
    codec = dict(identity.codec.settings)
    return {"schema_version": SCHEMA_VERSION, "model": identity.model, "weights": identity.weights, "kind": identity.kind, "codec": codec}


def from_values(values: Mapping[str, Any], where: str) -> Identity:
    """Back from JSON, with payloads that stay bytes; `where` names the file in the error."""
    check_version(values.get("schema_version") if isinstance(values, Mapping) else None, where)
    for name, kind in (("model", str), ("weights", str), ("kind", str), ("codec", Mapping)):
        if not isinstance(values.get(name), kind):
            raise LabError(f"{where} does not say its {name}: it is damaged; teach anew")
    return Identity(values["model"], values["weights"], values["kind"], Undecoded(values["codec"]))


def check_version(version: Any, where: str) -> None:
    """LabError for a store of another schema."""
    if version != SCHEMA_VERSION:
        remedy = "teach anew" if isinstance(version, int) and version < SCHEMA_VERSION else "use the lab that wrote it"
        raise LabError(f"{where} has schema version {version}, this lab reads version {SCHEMA_VERSION}; {remedy}")


def check_same(stored: Identity, expected: Identity, where: str) -> None:
    """LabError that names every part in which a store differs from what is asked of it."""
    wanted, got = expected.parts, stored.parts
    names = [*wanted, *(name for name in got if name not in wanted)]
    if other := [f"{name} expected {wanted.get(name)!r}, got {got.get(name)!r}" for name in names if wanted.get(name) != got.get(name)]:
        raise LabError(f"{where} was written with another model or memory: {'; '.join(other)}; teach anew, or use what it was written with")

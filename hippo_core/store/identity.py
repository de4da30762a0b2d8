"""What a store was written with: a store opens only for the model and the kind of key that its traces are of."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from hippo_core.files import LabError

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Identity:
    """`model` and the checksum of its `weights`; the kind of `key` in a word, its `dims`, and its `winners` at most."""

    model: str
    weights: str
    key: str
    dims: int
    winners: int

    def __post_init__(self) -> None:
        if not 1 <= self.winners <= self.dims:
            raise LabError(f"a key has from 1 winner to as many as dimensions, got {self.winners} winners of {self.dims} dimensions")


def as_values(identity: Identity) -> dict[str, Any]:
    """For JSON, with the version of the schema."""
    return {"schema_version": SCHEMA_VERSION, **asdict(identity)}


def from_values(values: Mapping[str, Any], where: str) -> Identity:
    """Back from JSON; `where` names the file in the error."""
    if (found := values.get("schema_version")) != SCHEMA_VERSION:
        raise LabError(f"{where} has schema version {found}, this lab reads version {SCHEMA_VERSION}; use the lab that wrote it")
    try:
        return Identity(**{field.name: values[field.name] for field in fields(Identity)})
    except KeyError as missing:
        raise LabError(f"{where} does not say its {missing.args[0]}: it is damaged; teach anew") from None


def check_same(found: Identity, expected: Identity, where: str) -> None:
    """LabError that names every part in which a store differs from what is asked of it."""
    pairs = [(field.name, getattr(expected, field.name), getattr(found, field.name)) for field in fields(Identity)]
    if other := [f"{name} expected {wanted!r}, got {got!r}" for name, wanted, got in pairs if wanted != got]:
        raise LabError(f"{where} was written with another model or key: {'; '.join(other)}; teach anew, or use what it was written with")

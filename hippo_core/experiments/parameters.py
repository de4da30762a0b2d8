"""The parameters that the cells of every experiment have, and how values become them."""

from collections.abc import Iterable
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from hippo_core.files import LabError
from hippo_core.results.records import run_folder

PLACE = ("run_id", "record_dir")  # where a record goes, not what it holds

Positive = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]


class Parameters(BaseModel):
    """What every notebook of an experiment can be told; the same names as in its parameters cell. Unknown keys and wrong types are errors.
    An experiment adds its own; one of several steps has a field `step`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    run_id: str = "scratch"
    model: str = "hippo-tiny"
    seed: Seed = 1337
    threads: Positive = 1
    dry_run: bool = False
    record_dir: str = ""

    def values(self) -> dict[str, Any]:
        """All of them as plain values but where the record goes."""
        return {name: value for name, value in self.model_dump().items() if name not in PLACE}


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """`["k=5", "swaps=0.5"]` as `{"k": 5, "swaps": 0.5}`; values are read as YAML. LabError for a text that is no assignment."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise LabError(f"expected key=value, got {text!r}")
        if name.strip() in values:
            raise LabError(f"{name.strip()} is given twice")
        try:
            values[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise LabError(f"the value in {text!r} is not valid YAML") from None
    return values


def with_settings(text: str) -> tuple[str, dict[str, Any]]:
    """`"name[key=value;other=[a, b]]"` as the name and its settings. LabError as of `assignments`."""
    name, opened, rest = text.partition("[")
    if opened and not rest.endswith("]"):
        raise LabError(f"expected name[key=value;other=value], got {text!r}: a bracket is open")
    return name, assignments(part for part in rest.removesuffix("]").split(";") if part)


def require_run_id(parameters: Parameters) -> None:
    """LabError where the run's id is no plain folder name."""
    run_folder(parameters.run_id)

"""The parameters that the cells of every experiment have, and how values become them."""

from collections.abc import Iterable
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from hippo_core.errors import LabError, shortened
from hippo_core.files import in_a_line, parse_yaml
from hippo_core.results.records import run_folder
from hippo_core.text import normal

RECORD_FIELDS = ("run_id", "record_dir")  # where a record goes, not what it holds

Positive = Annotated[int, Field(ge=1, le=10**9)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # what every generator of random numbers takes


class Parameters(BaseModel):
    """The parameters of every notebook of an experiment; the same names as in its parameters cell. Unknown keys and wrong types are errors.
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
        return {name: value for name, value in self.model_dump().items() if name not in RECORD_FIELDS}


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """`["k=5", "swaps=0.5"]` as `{"k": 5, "swaps": 0.5}`; values are read as YAML. LabError for a text that is no assignment."""
    values: dict[str, Any] = {}
    for raw in texts:
        text = normal(raw, "key=value")
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise LabError(f"expected key=value, got {shortened(repr(text))}")
        if name.strip() in values:
            raise LabError(f"{shortened(name.strip())} is given twice")
        try:
            values[name.strip()] = parse_yaml(value)
        except yaml.YAMLError as error:
            raise LabError(f"the value in {shortened(repr(text))} is not valid YAML: {in_a_line(error)}") from None
    return values


def with_settings(text: str) -> tuple[str, dict[str, Any]]:
    """`"name[key=value;other=[a, b]]"` as the name and its settings. LabError as of `assignments`."""
    name, opened, rest = text.partition("[")
    if opened and not rest.endswith("]"):
        raise LabError(f"expected name[key=value;other=value], got {shortened(repr(text))}: a bracket is open")
    return name, assignments(part for part in rest.removesuffix("]").split(";") if part)


def require_run_id(parameters: Parameters) -> None:
    """LabError where the run's id is no plain folder name."""
    run_folder(parameters.run_id)

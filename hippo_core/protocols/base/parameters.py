"""The parameters that the cells of every experiment have, and how values become them."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.results.records import run_folder

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


def require_run_id(parameters: Parameters) -> None:
    """LabError where the run's id is no plain folder name."""
    run_folder(parameters.run_id)

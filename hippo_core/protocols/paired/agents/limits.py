"""What contained commands may use."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]


class Limits(BaseModel):
    """Limits of the commands of one item; null: none. Sizes in megabytes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    cpu: Positive | None = None  # seconds of the processor, of each process
    processes: Positive | None = 128  # at a time, threads counted
    memory: Positive | None = 4096  # address space of each process
    resident: Positive | None = 4096  # what all of them hold together
    file: Positive | None = 256  # each file that is written
    open_files: Positive | None = 1024
    scratch: Positive = 256  # /tmp, and the home folder
    output: Annotated[float, Field(gt=0, le=64)] = 1.0  # of each stream what is kept; the rest is read and cut

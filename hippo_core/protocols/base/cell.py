"""A cell that runs in its notebook: what it was told, the folder that its record grows in, the records that it reads, its model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.models.spec import load_spec

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


@dataclass(frozen=True)
class RunningCell:
    """A cell that runs in this notebook."""

    parameters: Any
    record: Path  # the folder that its record grows in
    started: float  # seconds of `time.monotonic`
    sources: Mapping[str, Path] = field(default_factory=dict)  # the records of the cells that it needs, by what they are to it
    warnings: list[str] = field(default_factory=list)  # kept in the record

    @cached_property
    def language_model(self) -> "LanguageModel":
        """The model of this cell, loaded for its number of threads."""
        from hippo_core.models.load import load

        return load(load_spec(self.parameters.model), threads=self.parameters.threads)

    @property
    def device(self) -> str:
        """Where its model computes; the CPU where nothing has loaded one."""
        return str(self.language_model.device) if "language_model" in vars(self) else "cpu"

    def warn(self, message: str) -> None:
        """Print a warning and keep it for the record."""
        self.warnings.append(message)
        print(f"warning: {message}")

    def begun(self) -> None:
        """What is looked at once the record has begun."""

    def origin(self) -> dict[str, Any]:
        """What `meta.json` says of what was read, when all is done."""
        return {}

    def columns(self) -> tuple[str, ...]:
        """Columns of its rows besides those of the table."""
        return ()

"""The list of mutants: what each breaks, by which edits, and which tests catch it."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.files import parse_yaml

LIST = Path(__file__).parent / "mutants.yaml"


class Part(BaseModel):
    """A part of the list; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Edit(Part):
    """One passage of a file, and what stands in its place."""

    file: str
    old: Annotated[str, Field(min_length=1)]
    new: str


class Mutant(Part):
    """A deliberate break. `equivalent` says why no test can tell it from the right code; then nothing has to catch it."""

    name: str
    breaks: str
    edits: Annotated[tuple[Edit, ...], Field(min_length=1)]
    caught_by: tuple[str, ...] = ()
    equivalent: str = ""


class DoesNotApply(Exception):
    """An edit's passage is not there, or more than once."""


def mutants(path: Path = LIST) -> list[Mutant]:
    """All mutants, in the order of the list."""
    return [Mutant.model_validate(one) for one in parse_yaml(path.read_text(encoding="utf-8"))]


def edited(mutant: Mutant, root: Path) -> dict[Path, str]:
    """The files of a tree that a mutant changes, with their new text. DoesNotApply where a passage does not stand there once."""
    texts: dict[Path, str] = {}
    for edit in mutant.edits:
        path = root / edit.file
        text = texts.get(path) or (path.read_text(encoding="utf-8") if path.is_file() else "")
        if (count := text.count(edit.old)) != 1:
            raise DoesNotApply(f"{edit.file} holds the passage {count} times: {edit.old.strip()[:80]!r}")
        texts[path] = text.replace(edit.old, edit.new)
    return texts

"""Wordings that are in no pattern and no training text of the lab: data/reworded/*.yaml, written by hand before any run on them.

A suite with the setting `wording: reworded` draws its world as always, then rewords each statement with a generator that the world's id
seeds: only the texts differ. The files are frozen, so that nobody fits them to a memory, or a memory to them, without a trace.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from hippo_core.errors import LabError
from hippo_core.files import root, sha256
from hippo_core.models.spec import read_mapping
from hippo_core.suites.types import WorldSpec

Wording = Literal["own", "reworded"]
FROZEN = {
    "semantic": "28aecccea12567b8d3cd7c601c2be592c7008fd1b09cdff118c7bef5d2d64ab8",
    "spatial": "539e7950bf82041795a72b21a9e02b532cf2d02779c3a2e220c8f16b183c7a52",
}


def path_of(suite: str) -> Path:
    """The file of a suite's wordings."""
    return root() / f"data/reworded/{suite}.yaml"


def files_of(suite: str) -> Callable[[Any], Sequence[Path]]:
    """The files that a suite reads (`Suite.reads`): its wordings, if it uses them."""
    return lambda settings: [path_of(suite)] if settings.wording == "reworded" else []


def wordings(suite: str) -> dict[str, list[Any]]:
    """The wordings of a suite, by kind of statement; LabError where the file is not the frozen one."""
    return _read(path_of(suite), FROZEN[suite])


@cache
def _read(path: Path, frozen: str) -> dict[str, list[Any]]:
    if not path.is_file() or sha256(path) != frozen:
        raise LabError(f"{path}: expected the wordings that were frozen, with SHA-256 {frozen[:12]}...; restore the file")
    return read_mapping(path)


def generator(spec: WorldSpec) -> Random:
    """The generator that rewords this world; no draw of the world itself uses it."""
    return Random(f"reworded {spec.seed} {spec.id}")


def sentence(text: str) -> str:
    """The text with a capital."""
    return text[:1].upper() + text[1:]


def drawn_as(profile: str) -> str:
    """The profile whose worlds these are: of `reworded` those of `default`, of `reworded_hard` those of `hard`."""
    return (profile.removeprefix("reworded").removeprefix("_") or "default") if profile.startswith("reworded") else profile

"""Wordings that no pattern and no training text of the lab has: data/reworded/*.yaml, written by hand before anything was run on them.

A suite whose setting `wording` is "reworded" draws its world as ever, then words each statement anew, with a generator that the world's
id seeds: only the texts differ. The files are frozen, so that nobody fits them to a memory, or a memory to them, without a trace.
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
    """Where the wordings of a suite stand."""
    return root() / f"data/reworded/{suite}.yaml"


def files_of(suite: str) -> Callable[[Any], Sequence[Path]]:
    """What a suite reads (`Suite.reads`): its wordings, where it is told in these."""
    return lambda settings: [path_of(suite)] if settings.wording == "reworded" else []


def wordings(suite: str) -> dict[str, list[Any]]:
    """The wordings of a suite, by what they tell; LabError where the file is not the frozen one."""
    return _read(path_of(suite), FROZEN[suite])


@cache
def _read(path: Path, frozen: str) -> dict[str, list[Any]]:
    if not path.is_file() or sha256(path) != frozen:
        raise LabError(f"{path}: expected the wordings that were frozen, with SHA-256 {frozen[:12]}...; restore the file")
    return read_mapping(path)


def generator(spec: WorldSpec) -> Random:
    """What words this world anew; none of the draws that make the world are from it."""
    return Random(f"reworded {spec.seed} {spec.id}")


def sentence(text: str) -> str:
    """The text with a capital."""
    return text[:1].upper() + text[1:]


def drawn_as(profile: str) -> str:
    """The profile whose worlds these are: of `reworded` those of `default`, of `reworded_hard` those of `hard`."""
    return (profile.removeprefix("reworded").removeprefix("_") or "default") if profile.startswith("reworded") else profile

"""Suites whose material is given, not drawn: public files, or a folder of the user's own. They can run out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hippo_core.suites.types import Split, Suite, World


@dataclass(frozen=True)
class GivenSuite(Suite):
    """A suite with a limited number of worlds.

    `given(settings, split, seed, n)` yields the worlds of a split in the order of this seed, with at least n items in all where the
    material allows it (n None: all of them). It raises LabError where it does not, or ends early where that is no mistake.
    `files(settings)` are the names of the files of params/data.yaml that it reads.
    """

    given: Callable[[Any, Split, int, int | None], Iterator[World]] = field(kw_only=True)
    files: Callable[[Any], Sequence[str]] = field(kw_only=True, default=lambda settings: ())

"""Techniques: what of a dialogue is shown for a question. A file each, which says what it does; one interface (`base`).

Those that rank by the question rank passages: NAME@3 and NAME@6 are of three and six turns in a row.
"""

from collections.abc import Sequence
from dataclasses import replace

from hippo_core.discovery import Member, find_member, member
from hippo_core.errors import LabError
from hippo_core.protocols.conversation.techniques.base import Technique, TechniqueContext


def parsed(name: str) -> tuple[str, int]:
    """A technique's name and its chunk of turns; LabError for an unknown one."""
    base, at, size = name.partition("@")
    find_member(__name__, base, "technique")
    if not at:
        return base, 1
    if not size.isdecimal() or int(size) < 1 or not member(__name__, base, "technique").chunks:
        raise LabError(f"technique {name!r}: expected a retriever, @ and a number of turns from 1, as bm25@3")
    return base, int(size)


def technique_members(names: Sequence[str]) -> list[Member]:
    """The techniques of these names, which are not loaded; LabError where one is unknown, or is named twice."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise LabError(f"technique {twice[0]!r} is named twice")
    return [find_member(__name__, parsed(name)[0], "technique") for name in names]


def load_technique(name: str, setting: TechniqueContext) -> Technique:
    """The technique of this name; LabError for an unknown one."""
    base, chunk = parsed(name)
    return member(__name__, base, "technique")(replace(setting, chunk=chunk))

"""Defences: what is done to a cache between its writing and its reading. A file each, which says what it does; one interface (`base`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hippo_core.discovery import Member, find_member, member

if TYPE_CHECKING:
    from hippo_core.protocols.cache.defences.base import Defence, DefenceContext


def find_defences(names: Sequence[str]) -> list[Member]:
    """The defences of these names, which are not loaded; LabError for an unknown one."""
    return [find_member(__name__, name, "defence") for name in names]


def load_defence(name: str, setting: "DefenceContext") -> "Defence":
    """The defence of this name; LabError for an unknown one."""
    return member(__name__, name, "defence")(setting)

"""Drawing again: a world that breaks a rule is thrown away, and settings that no world can meet are an error, not a hang."""

from collections.abc import Iterator

from hippo_core.files import LabError
from hippo_core.suites.types import Settings

MOST = 20_000
PER_PART = 40  # a split accepts a quarter of what is drawn, and of that much is there already


def attempts(settings: Settings, what: str, parts: int = 1) -> Iterator[int]:
    """Count attempts at drawing `what`, which is made of `parts` of which each may take some; LabError when all are used up."""
    most = max(MOST, PER_PART * parts)
    yield from range(most)
    raise LabError(f"no {what} in {most} attempts that meets {settings!r}; raise n_facts, or lower n_items or n_competitors")

"""Drawing again: a world that breaks a rule is thrown away, and settings that no world can meet are an error, not a hang."""

from collections.abc import Iterator

from hippo_core.files import LabError
from hippo_core.suites.types import Settings

MOST = 20_000


def attempts(settings: Settings, what: str) -> Iterator[int]:
    """Count attempts at drawing `what`; LabError when all are used up."""
    yield from range(MOST)
    raise LabError(f"no {what} in {MOST} attempts that meets {settings!r}; raise n_facts, or lower n_items or n_competitors")

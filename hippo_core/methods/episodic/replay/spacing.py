"""Spaced rehearsal: when a trace is due again, in replay cycles.

The interval of a trace begins at one cycle, doubles each time it was recalled, and falls back to one when it was not (an expanding
schedule, Landauer & Bjork 1978). A schedule is a mapping from trace ids; a trace that it does not name was never rehearsed and is due.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FIRST = 1  # cycles until a trace that was not recalled comes again


@dataclass(frozen=True, slots=True)
class Due:
    """In which cycle a trace is due, and the interval that led there."""

    cycle: int
    interval: int


Schedule = Mapping[int, Due]


def due(schedule: Schedule, trace: int, cycle: int) -> bool:
    """Whether a trace is due in this cycle, or has been since an earlier one."""
    return trace not in schedule or schedule[trace].cycle <= cycle


def recalled(schedule: Schedule, cycle: int, hits: Iterable[int], misses: Iterable[int]) -> dict[int, Due]:
    """The schedule after a cycle in which `hits` were recalled and `misses` were not; the others' dues stay."""
    after = dict(schedule)
    for trace in hits:
        interval = 2 * schedule[trace].interval if trace in schedule else 2 * FIRST
        after[trace] = Due(cycle + interval, interval)
    for trace in misses:
        after[trace] = Due(cycle + FIRST, FIRST)
    return after

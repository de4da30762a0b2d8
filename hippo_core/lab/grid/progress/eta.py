"""The time that a grid still takes: what its open cells are expected to take, shared among the workers."""

import statistics
from collections.abc import Mapping, Sequence

from hippo_core.lab.run.cells import Cell


def seconds_left(
    cells: Sequence[Cell], running: Mapping[str, float], ended: Sequence[tuple[Cell, float]], earlier: Mapping[str, float], jobs: int
) -> float | None:
    """Seconds until the last of the open cells ends; None where nothing is known of any.

    Args:
        cells: those that have not ended.
        running: the seconds that running cells have had, by id.
        ended: cells of this run with what they took.
        earlier: what older records say of a cell, by id. It counts times the pace of this run; a cell without takes the mean.
    """
    compared = [(seconds, earlier[cell.id]) for cell, seconds in ended if cell.id in earlier]
    before = sum(old for _, old in compared)
    speed_ratio = sum(new for new, _ in compared) / before if before > 0 else 1.0
    known = [seconds for _, seconds in ended] or [earlier[cell.id] for cell in cells if cell.id in earlier]
    if not cells:
        return 0.0
    if not known:
        return None
    mean = statistics.fmean(known)
    takes = {cell.id: speed_ratio * earlier[cell.id] if cell.id in earlier else mean for cell in cells}
    left = [max(0.0, seconds - running.get(name, 0.0)) for name, seconds in takes.items()]
    return max(sum(left) / jobs, *left)


def duration(seconds: float) -> str:
    """Seconds as a person says them: 42 s, 3 min 20 s, 2 h 5 min."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"

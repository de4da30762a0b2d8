"""The time that a grid still takes: what each cell is expected to take, and a schedule of them over the workers."""

import heapq
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

from hippo_core.lab.run.cells import Cell

History = dict[tuple, list[tuple[int, float]]]  # kinds of cells, and size and seconds of each that ended


def expected(cells: Sequence[Cell], ended: Sequence[tuple[Cell, float]], earlier: Mapping[str, float]) -> dict[str, float]:
    """Seconds that each cell takes in all, by its id; empty where nothing is known. `ended` are cells of this run with their seconds,
    `earlier` what older records say. The first of these counts: cells of the same kind and size in this run; older records, times the pace
    of this run; a like cell in this run; the mean of what is known."""
    history, ratio, guesses = History(), pace(ended, earlier), dict[tuple, float | None]()
    alike: dict[tuple, list[float]] = {}
    for cell, seconds in ended:
        alike.setdefault(_kind(cell), []).append(seconds)
        note(history, cell.phase, cell.parameters, seconds)
    medians = {key: statistics.median(seconds) for key, seconds in alike.items()}
    estimates: dict[str, float | None] = {}
    for cell in cells:
        if (key := _kind(cell)) in medians:
            estimates[cell.id] = medians[key]
        elif cell.id in earlier:
            estimates[cell.id] = ratio * earlier[cell.id]
        else:
            estimates[cell.id] = guesses[key] if key in guesses else guesses.setdefault(key, guess(cell, history))
    known = [seconds for _, seconds in ended] or [seconds for seconds in estimates.values() if seconds is not None]
    mean = dict.fromkeys(estimates, statistics.fmean(known)) if known else {}
    return mean | {name: seconds for name, seconds in estimates.items() if seconds is not None}


def pace(ended: Sequence[tuple[Cell, float]], earlier: Mapping[str, float]) -> float:
    """How many seconds of this run go for one of older records: another machine, or warm kernels, make it something else than 1."""
    pairs = [(seconds, earlier[cell.id]) for cell, seconds in ended if cell.id in earlier]
    was = sum(old for _, old in pairs)
    return sum(new for new, _ in pairs) / was if was > 0 else 1.0


def seconds_left(waiting: Sequence[Cell], running: Mapping[str, float], takes: Mapping[str, float], jobs: int) -> float:
    """Seconds until the last cell ends, where `jobs` workers take the waiting cells in their order, each when its needs are met. `running`:
    the seconds that running cells have had; `takes`: what each cell takes in all (nothing, where it is not there).

    Cells that end at one time end before any worker takes another, so that their names have no say in what is taken."""
    there = {cell.id for cell in waiting} | set(running)
    position = {cell.id: number for number, cell in enumerate(waiting)}
    needs = TopologicalSorter({cell.id: there.intersection(cell.needs) for cell in waiting} | dict.fromkeys(running, ()))
    needs.prepare()
    busy = [(max(0.0, takes.get(name, 0.0) - spent), name) for name, spent in running.items()]
    heapq.heapify(busy)
    ready, now = sorted(position[name] for name in needs.get_ready() if name in position), 0.0
    while ready or busy:
        while ready and len(busy) < jobs:
            name = waiting[heapq.heappop(ready)].id
            heapq.heappush(busy, (now + takes.get(name, 0.0), name))
        now = busy[0][0]
        while busy and busy[0][0] == now:
            needs.done(heapq.heappop(busy)[1])
        for name in needs.get_ready():
            heapq.heappush(ready, position[name])
    return now


def guess(cell: Cell, history: History) -> float | None:
    """Seconds that a cell would take: the median of the same notebook, mode, model, suite and preset at the nearest size, else
    of the same notebook, mode and model, else None."""
    for key in _keys(cell.phase, cell.parameters):
        if key in history:
            size = cell.parameters.get("n", 0)
            nearest = min((abs(n - size) for n, _ in history[key]))
            return statistics.median(seconds for n, seconds in history[key] if abs(n - size) == nearest)
    return None


def note(history: History, phase: str, parameters: dict[str, Any], seconds: float) -> None:
    """Add what a cell with these parameters took."""
    for key in _keys(phase, parameters):
        history.setdefault(key, []).append((parameters.get("n", 0), seconds))


def _keys(phase: str, parameters: dict[str, Any]) -> tuple[tuple, tuple]:
    """What cells that should take about as long have in common, their size aside: of the same suite and preset, and of any."""
    model, step = parameters.get("model"), parameters.get("step")
    return (phase, model, parameters.get("suite"), parameters.get("preset"), step), (phase, model, step)


class Countdown:
    """Seconds that take a while to compute, with thousands of cells: a twentieth of the time goes into that, and between they run down."""

    def __init__(self, compute: Callable[[], float | None]) -> None:
        self._compute = compute
        self._value: float | None = None
        self._since = self._until = -math.inf

    def seconds(self) -> float | None:
        """What is left now; None where it is not known."""
        now = time.monotonic()
        if now >= self._until:
            self._value, self._since = self._compute(), now
            self._until = now + 20 * (time.monotonic() - now)
        return None if self._value is None else max(0.0, self._value - (now - self._since))


def words(cells: int, seconds: float | None) -> str:
    """How many cells are left, and how long they take, as a person says it."""
    if cells == 0:
        return "nothing left"
    return f"{cells} left" if seconds is None else f"{cells} left, about {duration(seconds)}"


def duration(seconds: float) -> str:
    """Seconds as a person says them: 42 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _kind(cell: Cell) -> tuple:
    return (*_keys(cell.phase, cell.parameters)[0], cell.parameters.get("n"))

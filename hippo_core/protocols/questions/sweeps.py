"""Sweeps: what a run says along an axis, where its settings, or its conditions, differ in one number.

An axis is a number of the suite (`n_facts=8`, `32`, `128`) or of a condition (`k=1`, `3`, `5`) with three values or more, all else alike.
What else sets the settings apart makes a panel each.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hippo_core.results.conditions import condition_name
from hippo_core.results.frames import Frame
from hippo_core.results.summaries import RUNGS

COMPANIONS = ("n_items", "window")  # how much of a world is asked and shown goes with its size and is no axis of its own
LEAST = 3  # values of an axis
SHARED_COLUMNS = ["model", "suite", "profile", "regime", "n", "split"]
NAMED = ["suite_overrides", "condition", "preset", "encoder", "preset_overrides"]


@dataclass(frozen=True)
class Point:
    """Where a cell stands: its number on the axis, its condition without that number, and the panel that it belongs to."""

    x: float
    line: str
    panel: str


@dataclass(frozen=True)
class Sweep:
    """The rows along one axis, all of one model, suite, profile, regime, size and split, with the columns `x`, `line` and `panel`."""

    axis: str
    rows: Frame

    def shared(self, name: str) -> str:
        """What all rows share."""
        return str(self.rows[name].iloc[0])

    @property
    def panels(self) -> list[str]:
        """What the panels show: cues from the easiest to the hardest, numbers as numbers."""
        return sorted(set(self.rows["panel"]), key=_panel_key)

    def title(self, panel: str) -> str:
        """A panel in words; nothing where it is the only one."""
        alone = re.fullmatch(r"\w+=\[([\w ]+)\]", panel)
        return alone[1] if alone else panel or ("as the suite is" if len(self.panels) > 1 else "")


def sweeps(rows: Frame) -> list[Sweep]:
    """Every axis in the rows of a run; those of its suites first."""
    matches = []
    for _, group in rows.groupby(SHARED_COLUMNS, sort=False):
        kinds = [dict(zip(NAMED, kind, strict=True)) for kind in group[NAMED].drop_duplicates().itertuples(index=False)]
        axes: dict[tuple[int, str], dict[tuple[str, str], Point]] = {}
        for kind in kinds:
            for axis, point in _points(kind):
                axes.setdefault(axis, {})[kind["suite_overrides"], kind["condition"]] = point
        matches += [(order, axis, _placed(group, _long(points))) for (order, axis), points in axes.items() if _long(points)]
    return [Sweep(axis, there) for _, axis, there in sorted(matches, key=lambda match: match[0])]


def _panel_key(panel: str) -> tuple[list[int], list[float], str]:
    rungs = [index for index, rung in enumerate(RUNGS) if f"[{rung}]" in panel]
    return rungs, [float(number) for number in re.findall(r"\d+\.?\d*", panel)], panel


def on_axis(x: float) -> str:
    """A number of an axis as it is written: 0.5, 5,000."""
    return f"{x:,.0f}" if x == int(x) else f"{x:g}"


def _points(kind: Mapping[str, str]) -> Iterator[tuple[tuple[int, str], Point]]:
    """The axes that a kind of cell stands on: 0 and the name of a number of its suite, 1 and that of a number of its condition."""
    worlds, own = _settings(kind["suite_overrides"]), _settings(kind["preset_overrides"])
    for axis, x in _numbers(worlds):
        yield (0, axis), Point(x, kind["condition"], _but(worlds, axis, *COMPANIONS))
    for axis, x in _numbers(own):
        line = condition_name(kind["preset"], kind["encoder"].replace("own", ""), _but(own, axis))
        yield (1, axis), Point(x, line, _but(worlds))


def _settings(overrides: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in overrides.split(";") if part)


def _numbers(settings: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for name, value in settings.items():
        try:
            x = float(value)
        except ValueError:
            continue
        if name not in COMPANIONS:
            yield name, x


def _but(settings: Mapping[str, str], *without: str) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items() if name not in without)


def _long(points: Mapping[tuple[str, str], Point]) -> dict[tuple[str, str], Point]:
    values: dict[tuple[str, str], set[float]] = {}
    for point in points.values():
        values.setdefault((point.line, point.panel), set()).add(point.x)
    return {key: point for key, point in points.items() if len(values[point.line, point.panel]) >= LEAST}


def _placed(rows: Frame, points: Mapping[tuple[str, str], Point]) -> Frame:
    keys = list(zip(rows["suite_overrides"], rows["condition"], strict=True))
    there = [key in points for key in keys]
    mine = [points[key] for key in keys if key in points]
    columns = {name: [getattr(point, name) for point in mine] for name in ("x", "line", "panel")}
    return rows[there].assign(**columns)

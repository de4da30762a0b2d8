"""How each condition looks in every figure and table: one label, colour, marker and line, for good.

A preset's file says it (`look`), and no record hangs on it. The colours are told apart with every common colour blindness, and their
lightness differs enough to be told apart in grey: baselines are muted, controls hollow, memories in full colour (Okabe and Ito's set),
those with a part off in warm and green tones. Presets whose file says nothing get colours and markers that no other one has; controls among
them are hollow too, in colours of their own.
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.methods.presets import looks_of_presets
from hippo_core.results.conditions import base, is_control, named

INK = "#1d2330"
QUIET = "#6b7280"
RULE = "#d9dde3"
CHANCE = "#8a5a00"
LEGAL = ("label", "colour", "marker", "line", "hollow")


@dataclass(frozen=True, slots=True)
class Style:
    """The look of one condition. `line` is a matplotlib dash pattern; a hollow marker is drawn as an outline."""

    label: str
    colour: str
    marker: str
    line: str = "-"
    hollow: bool = False


def looks() -> Mapping[str, Style]:
    """The look of each condition whose preset says it, in their order."""
    return _looks(root())


@cache
def _looks(lab: Path) -> Mapping[str, Style]:
    return {name: _made(name, told) for name, told in looks_of_presets().items()}


def _made(name: str, told: Mapping[str, Any]) -> Style:
    own = {"label": name.split("/")[-1], **{key: value for key, value in told.items() if key != "order"}}
    if wrong := [key for key in own if key not in LEGAL] + [key for key in ("colour", "marker") if key not in own]:
        raise LabError(
            f"preset {name}: look: expected order, label, colour, marker, line, hollow and with; {wrong[0]} is unknown or missing"
        )
    return Style(**own)


_UNLISTED = (("#8c4fb0", "#c2185b", "#00838f", "#b8860b", "#4e6b1e", "#7a3b1d", "#3949ab"), ("h", "d", "8", "p"))
_UNLISTED_CONTROLS = (("#7986cb", "#ba68c8", "#4db6ac", "#a1887f", "#e57399", "#9e9d24"), ("s", "v", "D", "P", "X", "^"))


def looks_for(listed: Mapping[str, Style], names: Iterable[str]) -> dict[str, Style]:
    """The looks of these names: of those that are listed in their order, then each other one's own, in a spare colour with its name."""
    found, (colours, markers) = {*names}, _UNLISTED
    spare = {name: zlib.crc32(name.encode()) for name in sorted(found - listed.keys())}
    return {name: one for name, one in listed.items() if name in found} | {
        name: Style(name, colours[number % len(colours)], markers[number // len(colours) % len(markers)]) for name, number in spare.items()
    }


def look(condition: str) -> Style:
    """The look of a condition. A variant has its preset's look with its settings in the label; a preset that is not listed has one of the
    spare looks, and so has a listed one that is run as a control."""
    listed, preset, name = looks(), base(condition), named(condition)
    label = (listed[preset].label if preset in listed else preset.split("/")[-1]) + condition[len(preset) :]
    own_control = is_control(condition) and not (preset.startswith("controls/") and preset in listed)
    known = None if own_control else listed.get(name)
    if known is not None:
        return known if condition == name else replace(known, label=label)
    colours, markers = _UNLISTED_CONTROLS if own_control else _UNLISTED
    number = zlib.crc32((condition if own_control else preset).encode())
    marker = markers[number // len(colours) % len(markers)]
    return Style(label, colours[number % len(colours)], marker, ":" if own_control else "-", own_control)

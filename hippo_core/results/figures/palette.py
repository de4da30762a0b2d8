"""The style of each condition in every figure and table: one label, colour, marker and line, for good.

A preset's file says it (`look`), and no record hangs on it. The colours are told apart with every common colour blindness and in grey
(Okabe and Ito's set); baselines are muted, controls hollow. A preset whose file says nothing gets a spare colour and marker.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.methods.presets import styles_of_presets
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


def styles() -> Mapping[str, Style]:
    """The style of each condition whose preset says it, in their order."""
    return _styles_in(root())


@cache
def _styles_in(lab: Path) -> Mapping[str, Style]:
    styles = {}
    for name, settings in styles_of_presets().items():
        own = {"label": name.split("/")[-1], **{key: value for key, value in settings.items() if key != "order"}}
        if wrong := [key for key in own if key not in LEGAL] + [key for key in ("colour", "marker") if key not in own]:
            legal = "order, label, colour, marker, line, hollow and with"
            raise LabError(f"preset {name}: look: expected {legal}; {wrong[0]} is unknown or missing")
        styles[name] = Style(**own)
    return styles


_UNLISTED = (("#8c4fb0", "#c2185b", "#00838f", "#b8860b", "#4e6b1e", "#7a3b1d", "#3949ab"), ("h", "d", "8", "p"))
_UNLISTED_CONTROLS = (("#7986cb", "#ba68c8", "#4db6ac", "#a1887f", "#e57399", "#9e9d24"), ("s", "v", "D", "P", "X", "^"))


def styles_for(listed: Mapping[str, Style], names: Iterable[str]) -> dict[str, Style]:
    """The styles of these names: of those that are listed in their order, then each other one's own, in a spare colour with its name."""
    wanted = {*names}
    known = {name: style for name, style in listed.items() if name in wanted}
    return known | {name: Style(name, *_spare(name, *_UNLISTED)) for name in sorted(wanted - listed.keys())}


def _spare(name: str, colours: Sequence[str], markers: Sequence[str]) -> tuple[str, str]:
    """A colour and a marker that follow from a name."""
    number = zlib.crc32(name.encode())
    return colours[number % len(colours)], markers[number // len(colours) % len(markers)]


def style_of(condition: str) -> Style:
    """The style of a condition: a variant has its preset's with its settings in the label; a preset that is not listed, or is run as a
    control, has a spare one."""
    listed, preset, name = styles(), base(condition), named(condition)
    label = (listed[preset].label if preset in listed else preset.split("/")[-1]) + condition[len(preset) :]
    own_control = is_control(condition) and not (preset.startswith("controls/") and preset in listed)
    known = None if own_control else listed.get(name)
    if known is not None:
        return known if condition == name else replace(known, label=label)
    if own_control:
        return Style(label, *_spare(condition, *_UNLISTED_CONTROLS), line=":", hollow=True)
    return Style(label, *_spare(preset, *_UNLISTED))

"""The settings of SMPD. This module does not import torch."""

from typing import Annotated, Literal

from pydantic import Field

from hippo_core.methods.base import OFF, Count, SettingsModel
from hippo_core.methods.encoded import StructuredSettings
from hippo_core.methods.relational.settings import ReplaySection


class BlockSettings(SettingsModel):
    """`enabled`: false: the map has all edges that an explorer ever told of. `block_threshold`: from which S on a new edge is blocked
    (gate.py)."""

    enabled: bool = True
    block_threshold: Annotated[float, Field(ge=0, le=3)] = 1.2


class SpatialSection(SettingsModel):
    """How statements are mapped and how the map speaks; params/presets/memory/smpd.yaml says what each is."""

    path_integration: bool = True
    particles: Count = 16
    keep: Annotated[float, Field(ge=0, le=1)] = 0.5
    wording: Literal["route", "question"] = "route"
    gate: BlockSettings = BlockSettings()
    reading: Literal["auto", "patterns"] = "auto"
    macros: bool = True


class SmpdSettings(StructuredSettings):
    """`traces` off: nothing is stored and nothing recalled. `k`: statements that are shown where the map has no answer. `replay`: how
    many of the routes that were told, the latest first, are replayed in a sleep."""

    traces: Annotated[Literal["spatial", "off"], OFF] = "spatial"
    spatial: SpatialSection = SpatialSection()
    replay: ReplaySection = ReplaySection()

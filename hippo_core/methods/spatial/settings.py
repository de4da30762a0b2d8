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
    """`path_integration`: whether an explorer's position is filtered from its moves and what it sees; without it a place is its label.
    `particles`: walks that are kept at each step. `keep`: how much of what was told of a link counts once it is told again.
    `wording`: how the model is told what the map says, as a told route, whose steps it is asked for in the place of the question; or in the
    words of the question, which stays as it is. `gate`: which links that an explorer tells of become edges. `reading`: by patterns
    alone, or (auto) by the fitted reader too where `encoder` is minilm. `macros`: whether what a sleep has learnt from routes is used."""

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

"""The settings of SGC-RSS. This module does not import torch."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from hippo_core.methods.base import OFF, Abstention, Count, MemorySettings, SettingsModel
from hippo_core.methods.episodic.settings import Encoder, usual_encoder


class SearchSettings(SettingsModel):
    """`hops`: statements of a path, at most; `beam`: paths that are followed further at each hop."""

    hops: Annotated[int, Field(ge=1, le=6)] = 3
    beam: Count = 12


class RelationalSection(SettingsModel):
    """`resolve`: whether a contested statement is replaced by the one that holds; `search`: how paths are found."""

    resolve: bool = True
    search: SearchSettings = SearchSettings()


class SgcRssSettings(MemorySettings):
    """`traces` off: nothing is stored and nothing recalled. `encoder`: what says which words mean the same; minilm: its vectors and the
    spelling; own: the spelling alone; auto: minilm where it is on the disk. `k`: traces that are shown where no path is found."""

    encoder: Encoder = Field(default="auto", validate_default=True)  # type: ignore[assignment]
    delivery: str = "kv"
    abstention: Abstention = "either"
    traces: Annotated[Literal["semantic", "off"], OFF] = "semantic"
    k: Count = 3
    relational: RelationalSection = RelationalSection()

    @field_validator("encoder", mode="before")
    @classmethod
    def _chosen(cls, encoder: object) -> object:
        return usual_encoder() if encoder == "auto" else encoder

"""The settings of SGC-RSS. This module does not import torch."""

from typing import Annotated, Literal

from pydantic import Field

from hippo_core.methods.base import OFF, Count, SettingsModel
from hippo_core.methods.encoded import StructuredSettings, Weight

Reader = Literal["own", "minilm", "learned"]


class SearchSettings(SettingsModel):
    """`hops`: statements of a path, at most; `beam`: paths that are followed further at each hop."""

    hops: Annotated[int, Field(ge=1, le=6)] = 3
    beam: Count = 12


class PassagesSection(SettingsModel):
    """What counts where statements are passages with titles (LinkedPassages); params/presets/memory/sgc_rss.yaml says what each is."""

    named: Weight = 4.0
    linked: Weight = 10.0
    naming: Weight = 6.0
    words: Weight = 0.5
    hub: Weight = 0.3
    seeds: Annotated[int, Field(ge=0)] = 12
    fade: Weight = 0.3


class EdgeGateSettings(SettingsModel):
    """`enabled`: false: every statement is an edge of its own, none is added to another. `threshold`: from which S on an edge is inserted
    (edge.py)."""

    enabled: bool = True
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.6


class ReplaySection(SettingsModel):
    """What happens in a sleep: `cycles` times those edges that wait are weighed again which have the most evidence, at most `max_items` of
    them (None: all)."""

    enabled: bool = True
    cycles: Count = 1
    max_items: Annotated[int, Field(ge=0)] | None = None


class RelationalSection(SettingsModel):
    """How statements are read, kept and searched; params/presets/memory/sgc_rss.yaml says what each is. `reading` auto: by patterns, and
    with the encoder minilm by the fitted reader too, of which the surer one answers. `wording` plain: what the statements of a path say,
    without who says so."""

    reading: Literal["auto", "patterns", "learned"] = "auto"
    schema_fasttrack: bool = True
    gate: EdgeGateSettings = EdgeGateSettings()
    resolve: bool = True
    wording: Literal["own", "plain", "question", "either"] = "either"
    search: SearchSettings = SearchSettings()
    passages: PassagesSection = PassagesSection()


class SgcRssSettings(StructuredSettings):
    """`traces` off: nothing is stored and nothing recalled. `encoder`: what says which words mean the same, spelling alone (own) or vectors
    too."""

    traces: Annotated[Literal["semantic", "off"], OFF] = "semantic"
    relational: RelationalSection = RelationalSection()
    replay: ReplaySection = ReplaySection()

    @property
    def fitted(self) -> bool:
        """Whether statements are read by the fitted reader, too."""
        return self.relational.reading == "learned" or (self.relational.reading == "auto" and self.encoder == "minilm")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("minilm",) if self.fitted else super().requires

"""Retrieval by a head over MiniLM's word pieces, fitted as a memory's key is (retrieval/minilm_head.py).

With more channels than `key`, which is the head here, they are added up by weights that were fitted as the memory's are, or unfitted.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from hippo_core.methods.rag.fitted import FittedRag, FittedSettings

if TYPE_CHECKING:
    from hippo_core.retrieval.confidence import Confidence
    from hippo_core.retrieval.fusion import Channel
    from hippo_core.retrieval.text_encoder import TextEncoder


class HeadSettings(FittedSettings):
    """`channels`: what is added up, `key` being the head; `head`: the seed that it was trained from; `fusion`: how channels are added up;
    sum: each standardised among the world's passages, nothing fitted."""

    channels: Annotated[tuple[Literal["words", "grams", "key", "minilm", "pieces"], ...], Field(min_length=1)] = ("key",)
    head: Literal[1337, 1338, 1339] = 1337
    fusion: Literal["sum", "fitted"] = "fitted"

    @model_validator(mode="after")
    def _needs_sum(self) -> "HeadSettings":
        if self.abstention == "method" and self.fusion != "sum":
            raise ValueError("abstention=method needs fusion=sum: no confidence was fitted for fitted weights")
        if "pieces" in self.channels and self.fusion != "sum":
            raise ValueError("the channel pieces needs fusion=sum: no weights were fitted for it")
        return self


class HeadRag(FittedRag):
    """The k best by a head over MiniLM's word pieces, alone or with other channels."""

    Settings = HeadSettings
    weights = ("minilm/head-*", "minilm/pieces-*", "minilm/confidence.*")
    says_confidence = True

    @property
    def channels(self) -> "Sequence[Channel]":
        return self.settings.channels

    @cached_property
    def _made(self) -> Mapping[str, Any]:
        from hippo_core.models import artifacts
        from hippo_core.retrieval.minilm_head import owner, part_of

        return artifacts.read_part(owner(), part_of(self.settings.head))

    @property
    def fusion_weights(self) -> Mapping[str, Mapping[str, float]] | None:
        return None if self.settings.fusion == "sum" else super().fusion_weights

    @property
    def confidence(self) -> "Confidence | None":
        from hippo_core.retrieval.confidence import load_confidence
        from hippo_core.retrieval.minilm_head import owner

        return load_confidence(owner(), self.channels, self.settings.abstention == "method") if self.settings.fusion == "sum" else None

    @cached_property
    def encoder(self) -> "TextEncoder":
        from hippo_core.retrieval.minilm_head import head_encoder, part_of

        code = self._made["fitted_with"]
        return head_encoder(part_of(self.settings.head), code["expansion"], code["winners"], str(self.lm.device), "pieces" in self.channels)

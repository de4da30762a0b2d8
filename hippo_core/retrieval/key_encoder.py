"""The model's key: what its first blocks make of each token of a text, expanded into a large space, the strongest units winning.

    a_t = relu(W s_t + b) * softplus(v s_t + c),    key = k-WTA(max over t of a_t)

with s_t the states [D] that go into a few early blocks, each normalised, side by side. So a text is the union of what its tokens stand
for, and the product of two keys adds up what the tokens of the one find in the other: late interaction (Khattab and Zaharia 2020,
arXiv 2004.12832, section 3.3) in the form of a sparse code over learned units (Formal et al. 2021, arXiv 2107.05720, section 3.2, where
the units are the vocabulary). W, b, v, c are fitted on train worlds (training/key.py), the model stays as it is. The units are
nested: the first half of them is a code too (Kusupati et al. 2022, arXiv 2205.13147).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn.functional import layer_norm, normalize, relu, softplus

from hippo_core.files import LabError
from hippo_core.models import artifacts, minilm
from hippo_core.models.early_layers import early_states
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.spec import validated


class KeySettings(BaseModel):
    """The shape of a key head: which blocks' inputs it reads (0: the embeddings), how wide each is, and its units."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    blocks: Annotated[tuple[int, ...], Field(min_length=1)]
    hidden: Annotated[int, Field(ge=1)]
    units: Annotated[int, Field(ge=8)] = 2048

    @property
    def inputs(self) -> int:
        """The width of a token's states."""
        return self.hidden * len(self.blocks)


class KeyHead(nn.Module):
    """The units and what each token counts."""

    def __init__(self, settings: KeySettings) -> None:
        super().__init__()
        self.settings = settings
        self.units = nn.Linear(settings.inputs, settings.units)
        self.weight = nn.Linear(settings.inputs, 1)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Activations [N, units], 0 or more, of padded states [N, T, D] whose real tokens are where `mask` [N, T] is True."""
        parts = layer_norm(states.unflatten(-1, (-1, self.settings.hidden)), (self.settings.hidden,)).flatten(-2)
        active = relu(self.units(parts)) * softplus(self.weight(parts))
        return active.masked_fill(~mask[..., None], 0.0).amax(1)


class TokenStates(Protocol):
    """What a head reads of texts."""

    @property
    def name(self) -> str:
        """Whose states they are."""
        ...

    @property
    def shape(self) -> tuple[tuple[int, ...], int]:
        """Blocks, and how wide the states of each are."""
        ...

    def of(self, texts: Sequence[str]) -> list[Tensor]:
        """The states of each text's tokens [T, D], fp32, on the CPU."""
        ...

    def cost(self, text: str) -> float:
        """Tokens that are run for a text, each counting the share of the blocks that it goes through."""
        ...


@dataclass(frozen=True)
class BlockStates:
    """What goes into some of a language model's first blocks."""

    lm: LanguageModel
    blocks: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.lm.spec.name

    @property
    def shape(self) -> tuple[tuple[int, ...], int]:
        return self.blocks, self.lm.config.hidden_size

    def of(self, texts: Sequence[str]) -> list[Tensor]:
        return early_states(self.lm, texts, self.blocks)

    def cost(self, text: str) -> float:
        return len(self.lm.encode(text)) * max(self.blocks) / self.lm.config.num_hidden_layers


@dataclass(frozen=True)
class MiniLMStates:
    """What comes out of all-MiniLM-L6-v2."""

    device: str = "cpu"
    name = "minilm"
    shape = (minilm.LAYERS,), minilm.WIDTH

    def of(self, texts: Sequence[str]) -> list[Tensor]:
        return minilm.token_states(texts, self.device)

    def cost(self, text: str) -> float:
        return minilm.pieces(text, self.device)


@dataclass(frozen=True)
class KeyModel:
    """What a head reads, with the head that was fitted for it: texts to activations."""

    source: TokenStates
    head: KeyHead

    def activations(self, texts: Sequence[str], expansion: int | None = None) -> Tensor:
        """The first `expansion` units [N, expansion] of each text, fp32, each row of length 1 (0 for a text without a token)."""
        return self.active(self.source.of(texts), expansion)

    @torch.inference_mode()
    def active(self, states: Sequence[Tensor], expansion: int | None = None) -> Tensor:
        """The same of texts whose tokens' states [T, D] are known."""
        expansion = expansion or self.head.settings.units
        if not 1 <= expansion <= self.head.settings.units:
            raise LabError(f"the key of {self.source.name} has {self.head.settings.units} units, got an expansion of {expansion}")
        parts = [self.head(*padded(states[start : start + 256])) for start in range(0, len(states), 256)]
        return normalize(torch.cat(parts)[:, :expansion], dim=-1) if parts else torch.zeros(0, expansion)


def load_head(owner: LanguageModel | artifacts.Owner, part: str = "key", folder: Path | None = None) -> KeyHead:
    """A head that was fitted. LabError where there is none, where it is damaged or belongs to other weights."""
    made = artifacts.read_part(owner, part, folder)
    head = KeyHead(validated(KeySettings, made.get("settings", {}), f"{part}.json"))
    artifacts.fill(head, (folder or artifacts.folder_of(owner)) / f"{part}.safetensors")
    return head.eval().requires_grad_(False)


def padded(states: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """States of several texts [N, longest, D], 0 behind the last token, and where the tokens are [N, longest]."""
    width = max(1, *(len(state) for state in states)) if states else 1
    laid = torch.zeros(len(states), width, states[0].shape[-1])
    mask = torch.zeros(len(states), width, dtype=torch.bool)
    for row, state in enumerate(states):
        laid[row, : len(state)], mask[row, : len(state)] = state, True
    return laid, mask

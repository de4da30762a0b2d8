"""The model's key: early states of each token are expanded into a large space, and the strongest units win.

    a_t = relu(W s_t + b) * softplus(v s_t + c),    key = k-WTA(max over t of a_t)

s_t [D] concatenates the normalised inputs of a few early blocks. The product of two keys is late interaction (Khattab and Zaharia 2020,
arXiv 2004.12832, section 3.3) as a sparse code over learned units (Formal et al. 2021, arXiv 2107.05720, section 3.2). W, b, v and c are
fitted on train worlds (recipes/key.py). The first half of the units is a code too (Kusupati et al. 2022, arXiv 2205.13147).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn.functional import layer_norm, normalize, relu, softplus

from hippo_core.errors import LabError
from hippo_core.models import artifacts, minilm
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.score import early_states
from hippo_core.models.spec import validated


class KeySettings(BaseModel):
    """The shape of a key head."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    blocks: Annotated[tuple[int, ...], Field(min_length=1)]  # whose inputs it reads; 0 is the embeddings
    hidden: Annotated[int, Field(ge=1)]  # the width of each of these inputs
    units: Annotated[int, Field(ge=8)] = 2048

    @property
    def inputs(self) -> int:
        """The width of a token's concatenated states."""
        return self.hidden * len(self.blocks)


class KeyHead(nn.Module):
    """The units, and the weight of each token."""

    def __init__(self, settings: KeySettings) -> None:
        super().__init__()
        self.settings = settings
        self.units = nn.Linear(settings.inputs, settings.units)
        self.weight = nn.Linear(settings.inputs, 1)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Activations of at least 0 [texts, units] of padded states [texts, tokens, dim]; `mask` [texts, tokens]: the real tokens."""
        parts = layer_norm(states.unflatten(-1, (-1, self.settings.hidden)), (self.settings.hidden,)).flatten(-2)
        active = relu(self.units(parts)) * softplus(self.weight(parts))
        return active.masked_fill(~mask[..., None], 0.0).amax(1)


@dataclass(frozen=True)
class BlockStates:
    """The inputs of some of a language model's first blocks. `shape`: the blocks, and the width of each one's states."""

    lm: LanguageModel
    blocks: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.lm.spec.name

    @property
    def shape(self) -> tuple[tuple[int, ...], int]:
        return self.blocks, self.lm.config.hidden_size

    def of(self, texts: Sequence[str]) -> list[Tensor]:
        """The states of each text's tokens [T, D], fp32, on the CPU."""
        return early_states(self.lm, texts, self.blocks)

    def cost(self, text: str) -> float:
        """The tokens that are run for a text; each counts as the share of the blocks that it passes."""
        return len(self.lm.encode_text(text)) * max(self.blocks) / self.lm.config.num_hidden_layers


@dataclass(frozen=True)
class MiniLMStates:
    """The output of all-MiniLM-L6-v2."""

    device: str = "cpu"
    name = "minilm"
    shape = (minilm.LAYERS,), minilm.WIDTH

    def of(self, texts: Sequence[str]) -> list[Tensor]:
        return minilm.token_states(texts, self.device)

    def cost(self, text: str) -> float:
        return minilm.pieces(text, self.device)


TokenStates = BlockStates | MiniLMStates  # what a head reads


@dataclass(frozen=True)
class KeyModel:
    """Token states and the head that was fitted for them. Together they turn texts into activations."""

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


def load_head(owner: LanguageModel | artifacts.Owner, part: str = "key") -> KeyHead:
    """Load a fitted head. LabError where there is none, it is damaged, or it belongs to other weights."""
    return artifacts.load_part(owner, part, lambda values: KeyHead(validated(KeySettings, values, f"{part}.json")))


def padded(states: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The states of several texts, padded with zeros [texts, longest, dim], and a mask that is True for real tokens [texts, longest]."""
    width = max(1, *(len(state) for state in states)) if states else 1
    laid = torch.zeros(len(states), width, states[0].shape[-1])
    mask = torch.zeros(len(states), width, dtype=torch.bool)
    for row, state in enumerate(states):
        laid[row, : len(state)], mask[row, : len(state)] = state, True
    return laid, mask

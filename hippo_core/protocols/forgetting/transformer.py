"""A small transformer as a function of one vector of weights, so that many, one an initialisation, are run as one (torch.func.vmap).

GPT-2's block (Radford et al. 2019): learnt positions, norms first, biases, an MLP of four times the width, the embedding as output.
Matrices begin as N(0, .02), biases as 0. Two variants are those of KintaroAI's protocol (llm-fundamentals, EVAL.md): an MLP of which a band
around the diagonal is kept, and a mixture over the last places after each block.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch.nn import functional

from hippo_core.errors import LabError, unknown
from hippo_core.protocols.forgetting.tasks import VOCABULARY, Corpus

SPREAD = 0.02
QUICKER = 10.0  # times the rate, of what a sort layer learns


@dataclass(frozen=True)
class TransformerShape:
    """The sizes of a transformer.

    Args:
        block: the longest sequence.
        fc1, fc2: how wide a band of the MLP's first and second matrix is kept, in hidden units; None: all of it.
        sort: the places over which each block's output is mixed, its own among them; 0: none.
        bf16: whether inputs and weights of linear layers are rounded to bfloat16; attention and all else stay float32.
    """

    block: int
    vocabulary: int = VOCABULARY
    layers: int = 2
    heads: int = 4
    width: int = 128
    fc1: int | None = None
    fc2: int | None = None
    sort: int = 0
    bf16: bool = False

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each tensor, in the order in which they lie in the vector of weights."""
        c = self.width
        block = {"norm1": (2, c), "qkv": (3 * c, c), "qkv_bias": (3 * c,), "out": (c, c), "out_bias": (c,)}
        block |= {"norm2": (2, c), "up": (4 * c, c), "up_bias": (4 * c,), "down": (c, 4 * c), "down_bias": (c,)}
        block |= {"sort": (2,)} if self.sort else {}
        blocks = {f"{layer}.{name}": shape for layer in range(self.layers) for name, shape in block.items()}
        return {"tokens": (self.vocabulary, c), "places": (self.block, c), **blocks, "norm": (2, c)}

    @cached_property
    def sizes(self) -> list[int]:
        """How many weights each tensor has."""
        return [math.prod(shape) for shape in self.shapes.values()]

    @cached_property
    def bands(self) -> Mapping[str, torch.Tensor]:
        """What is kept of the MLP's matrices, 1 or 0, by name: where the hidden unit is at most half a band from the unit that lies at the
        same share of the width."""
        apart = (torch.arange(4 * self.width).unsqueeze(1) - 4 * torch.arange(self.width)).abs()  # hidden unit, unit
        widths = {"up": (self.fc1, apart), "down": (self.fc2, apart.T)}
        return {name: (distance <= band / 2).float() for name, (band, distance) in widths.items() if band is not None}

    @property
    def weights(self) -> int:
        """How many weights there are."""
        return sum(self.sizes)

    def named(self, vector: torch.Tensor) -> dict[str, torch.Tensor]:
        """The tensors by name, as views of a vector `(weights,)`."""
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), vector.split(self.sizes), strict=True)}

    def require(self, corpus: Corpus, name: str) -> None:
        """LabError where a task does not fit into the model; `name` is what a person calls it."""
        for task in corpus.tasks:
            if (length := task.tokens.shape[1] + 1) > self.block:  # the end of the sequence is a token, too
                raise LabError(f"task {task.name} has sequences of {length} tokens, preset {name} takes {self.block}; use model=formal")
            if (highest := int(task.tokens.max())) >= self.vocabulary:
                raise LabError(f"task {task.name} has the token {highest}, preset {name} knows 0 to {self.vocabulary - 1}")


PRESETS: Mapping[str, TransformerShape] = {
    "formal": TransformerShape(24),
    "grokking": TransformerShape(8),
    "small": TransformerShape(24, width=64),
}


def load_shape(name: str, **variant: int | None) -> TransformerShape:
    """The sizes of that name, with what a variant changes of them; LabError with what is legal otherwise."""
    if name not in PRESETS:
        raise unknown("model of this experiment", name, PRESETS)
    return replace(PRESETS[name], **variant)  # type: ignore[arg-type]


def initial(shape: TransformerShape, seed: int) -> torch.Tensor:
    """The weights at the beginning, `(weights,)`, from a seed."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for name, size in shape.shapes.items():
        if "norm" in name:
            parts.append(torch.cat([torch.ones(size[1]), torch.zeros(size[1])]))
        elif name.endswith(("bias", "sort")):
            parts.append(torch.zeros(size))
        else:
            parts.append(SPREAD * torch.randn(size, generator=generator).flatten())
    return torch.cat(parts)


def logits(shape: TransformerShape, vector: torch.Tensor, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The logits `(items, places, vocabulary)` of tokens `(items, length)` at the places `at`, `(items, places)`, alone: the last block
    runs no others. `vector`: `(weights,)`."""
    weights, linear = shape.named(vector), _rounded if shape.bf16 else functional.linear
    return linear(blocks(shape, weights, functional.embedding(tokens, weights["tokens"]), at), weights["tokens"])


def blocks(shape: TransformerShape, weights: Mapping[str, torch.Tensor], read: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """What the blocks make of vectors that were read, `(items, length, width)`, at the positions `at`, `(items, positions)`, normed:
    `(items, positions, width)`."""
    items, length, _ = read.shape
    heads, width, linear = shape.heads, shape.width, _rounded if shape.bf16 else functional.linear
    hidden = read + weights["places"][:length]
    positions = torch.arange(length)
    seen = positions <= positions.unsqueeze(1)
    for layer in range(shape.layers):
        w = {name: weights[f"{layer}.{name}"] for name in ("qkv", "qkv_bias", "out", "out_bias", "up", "up_bias", "down", "down_bias")}
        w |= {name: w[name] * kept for name, kept in shape.bands.items()}
        normed = _normed(hidden, weights[f"{layer}.norm1"])
        if layer == shape.layers - 1 and not shape.sort:
            there = at.unsqueeze(-1).expand(-1, -1, width)
            asking, hidden = normed.gather(1, there), hidden.gather(1, there)
            seen = (positions <= at.unsqueeze(-1)).unsqueeze(1)
        else:
            asking = normed
        q = linear(asking, w["qkv"][:width], w["qkv_bias"][:width])
        k, v = linear(normed, w["qkv"][width:], w["qkv_bias"][width:]).chunk(2, -1)
        q, k, v = (part.reshape(items, part.shape[1], heads, width // heads).transpose(1, 2) for part in (q, k, v))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(width // heads)).masked_fill(~seen, -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(items, asking.shape[1], width)
        hidden = hidden + linear(mixed, w["out"], w["out_bias"])
        normed = _normed(hidden, weights[f"{layer}.norm2"])
        risen = functional.gelu(linear(normed, w["up"], w["up_bias"]), approximate="tanh")
        hidden = hidden + linear(risen, w["down"], w["down_bias"])
        if shape.sort:
            hidden = _mixed(hidden, weights[f"{layer}.sort"], shape.sort)
    if shape.sort:
        hidden = hidden.gather(1, at.unsqueeze(-1).expand(-1, -1, width))
    return _normed(hidden, weights["norm"])


def _rounded(hidden: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """A linear layer whose product is of bfloat16, and whose sum with the bias is of float32."""
    product = functional.linear(hidden.bfloat16(), matrix.bfloat16()).float()
    return product if bias is None else product + bias


def _mixed(hidden: torch.Tensor, two: torch.Tensor, window: int) -> torch.Tensor:
    """Each position's vector blended with a mixture of the last `window` positions' by their similarity, the sort layer. `two`: what is
    learnt of the share of the mixture, which begins at sigmoid(-2), and of the temperature, 1; ten times as fast as the model."""
    share, heat = (QUICKER * two).split(1)
    positions = torch.arange(hidden.shape[1])
    back = positions.unsqueeze(1) - positions
    scores = hidden @ hidden.transpose(-1, -2) / (math.sqrt(hidden.shape[-1]) * heat.exp())
    mixture = scores.masked_fill((back < 0) | (back >= window), -math.inf).softmax(-1) @ hidden
    return torch.lerp(hidden, mixture, (share - 2).sigmoid())


def _normed(hidden: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
    """Layer norm; `norm`: gains and biases, `(2, width)`."""
    return functional.layer_norm(hidden, norm.shape[1:], norm[0], norm[1])

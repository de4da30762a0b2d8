"""Dense retrieval: the cosine of the question's and the fact's vectors, both from the frozen model that answers. Nothing is trained.

A text's vector is the mean of its tokens' states after the middle block, weighted by a / (a + p(token)), with a = 1e-3 and p the token's
share in the taught facts (Arora et al. 2017, section 3). The mean vector of the facts is subtracted in place of the paper's first
principal component, which a handful of facts does not determine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from hippo_core.models.score import early_states
from hippo_core.retrieval.world_index import WorldIndex

SMOOTHING = 1e-3


@dataclass(frozen=True)
class DenseIndex:
    """The index of the taught facts."""

    unit: Tensor  # unit vectors of the facts after their mean is subtracted [facts, dim]
    mean: Tensor  # of the facts' vectors [dim]
    counts: Tensor  # how often each token id occurs in the facts [ids]


def cosines(index: WorldIndex, taught: tuple[str, ...], question: str) -> np.ndarray:
    """The cosine of each taught fact with the question [facts]."""
    dense = index.once(("dense", taught), lambda: _dense(index, taught))
    tokens, states = index.cue("own", question, lambda texts: _states(index, texts))
    return (dense.unit @ normalize(_vector(tokens, states, dense.counts) - dense.mean, dim=0)).numpy()


def query_tokens(index: WorldIndex, question: str) -> int:
    """How many tokens the model runs for a question: those of the question and the one that opens a text."""
    return len(index.lm.encode_text(question)) + 1


def _dense(index: WorldIndex, taught: tuple[str, ...]) -> DenseIndex:
    states_by_fact = index.once(
        "states", lambda: dict(zip(index.passages, _states(index, [fact.text for fact in index.traces]), strict=True))
    )
    known = [states_by_fact[fact] for fact in taught]
    counts = torch.bincount(torch.tensor([token for tokens, _ in known for token in tokens], dtype=torch.long), minlength=1)
    vectors = torch.stack([_vector(tokens, states, counts) for tokens, states in known])
    mean = vectors.mean(0)
    return DenseIndex(normalize(vectors - mean, dim=-1), mean, counts)


def _states(index: WorldIndex, texts: Sequence[str]) -> list[tuple[list[int], Tensor]]:
    """The tokens of each text, and their states [T, D] after the middle block."""
    middle = (index.lm.config.num_hidden_layers + 1) // 2
    return list(zip(map(index.lm.encode, texts), early_states(index.lm, texts, [middle], batch_size=32), strict=True))


def _vector(tokens: list[int], states: Tensor, counts: Tensor) -> Tensor:
    if not tokens:
        return states.new_zeros(states.shape[-1])
    ids = torch.tensor(tokens)
    seen = pad(counts, (0, max(0, int(ids.max()) + 1 - len(counts))))[ids].clamp(min=1)
    share = seen / counts.sum().clamp(min=1)
    return (SMOOTHING / (SMOOTHING + share)) @ states / len(tokens)

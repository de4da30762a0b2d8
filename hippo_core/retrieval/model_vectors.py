"""Scores by meaning: cosine between a question's vector and a fact's, both from the frozen model that answers, nothing trained.

A text's vector is the mean of its tokens' states after the middle block, each weighted by a / (a + p(token)) with a = 1e-3 and p the
token's share in the taught facts (smooth inverse frequency: Arora et al. 2017, section 3); a token that no fact holds counts as one
that occurs once. The taught facts' mean vector is taken off every vector, the question's too, in place of the paper's first principal
component, which a handful of facts does not fix.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from hippo_core.models.early_layers import early_states
from hippo_core.retrieval.world_index import WorldIndex

SMOOTHING = 1e-3


@dataclass(frozen=True)
class DenseIndex:
    """Unit vectors of the taught facts [N, D] about their mean [D], and how often each token id occurs in them [V]."""

    unit: Tensor
    mean: Tensor
    counts: Tensor


def cosines(index: WorldIndex, taught: tuple[str, ...], question: str) -> np.ndarray:
    """The cosine of each taught fact with the question."""
    dense = index.once(("dense", taught), lambda: _dense(index, taught))
    tokens, states = index.cue("own", question, lambda texts: _states(index, texts))
    return (dense.unit @ normalize(_vector(tokens, states, dense.counts) - dense.mean, dim=0)).numpy()


def query_tokens(index: WorldIndex, question: str) -> int:
    """How many tokens the model runs for a question: its own and the one that opens a text."""
    return len(index.lm.encode(question)) + 1


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
    """Of each text its tokens and their states [T, D] after the middle block."""
    middle = (index.lm.config.num_hidden_layers + 1) // 2
    return list(zip(map(index.lm.encode, texts), early_states(index.lm, texts, [middle], batch_size=32), strict=True))


def _vector(tokens: list[int], states: Tensor, counts: Tensor) -> Tensor:
    if not tokens:
        return states.new_zeros(states.shape[-1])
    ids = torch.tensor(tokens)
    seen = pad(counts, (0, max(0, int(ids.max()) + 1 - len(counts))))[ids].clamp(min=1)
    share = seen / counts.sum().clamp(min=1)
    return (SMOOTHING / (SMOOTHING + share)) @ states / len(tokens)

"""Fit the projection of word pieces (retrieval/pieces.py) on the batches of a key: InfoNCE over late interaction, as `recipes/key.py`."""

import math
from collections.abc import Callable, Sequence
from random import Random

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout, normalize

from hippo_core.retrieval.pieces import PieceHead, PieceSettings, matched
from recipes.key import States, minimise, targets


class PieceRecipe(BaseModel):
    """What a projection depends on, but for its batches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int = 1400
    together: int = 2  # rooms a step
    rate: float = 5e-4  # AdamW
    width: int = 128
    dropout: float = 0.1  # of a piece's numbers, while it learns


def fit_pieces(random: Random, batches: Sequence[States], recipe: PieceRecipe, say: Callable[[str], None] = print) -> PieceHead:
    """A projection that begins as the directions in which pieces differ most, fitted to batches."""
    hidden = batches[0].facts[0].shape[-1]
    head = PieceHead(PieceSettings(hidden=hidden, width=recipe.width))
    with torch.no_grad():
        head.project.weight.copy_(principal(batches, recipe.width))
        head.weight.weight.zero_()
        head.weight.bias.fill_(math.log(math.e - 1))  # every piece counts 1
    sharpness = torch.nn.Parameter(torch.tensor(3.0))
    minimise(
        [*head.parameters(), sharpness],
        lambda: _loss(head, sharpness, random.sample(batches, recipe.together), recipe.dropout),
        recipe.steps,
        recipe.rate,
        0.0,
        say,
    )
    return head.eval().requires_grad_(False)


def principal(batches: Sequence[States], width: int) -> Tensor:
    """The first directions [width, hidden] of the pieces of some facts, each of length 1 before."""
    some = normalize(torch.cat([state for batch in batches[:40] for state in batch.facts]).float(), dim=-1)
    return torch.linalg.eigh(some.T @ some / len(some)).eigenvectors.flip(1)[:, :width].T


def _loss(head: PieceHead, sharpness: Tensor, batches: Sequence[States], share: float) -> tuple[Tensor, float]:
    """InfoNCE over the facts of all batches, and how often the first is the right one."""
    facts, cues = [state for batch in batches for state in batch.facts], [state for batch in batches for state in batch.cues]
    cue_states = dropout(torch.cat(cues).float(), share)
    best = matched(head(cue_states), head(dropout(torch.cat(facts).float(), share)), _owner(facts), len(facts))
    weight, of = head.weights(cue_states), _owner(cues)
    summed = best.new_zeros(len(cues), len(facts)).index_add(0, of, best * weight[:, None])
    scores = summed / weight.new_zeros(len(cues)).index_add(0, of, weight)[:, None]
    gold, apart = targets(batches)
    scores = sharpness.exp() * scores + apart
    return cross_entropy(scores, gold), (scores.argmax(1) == gold).float().mean().item()


def _owner(states: Sequence[Tensor]) -> Tensor:
    """The number of the text that each piece is of."""
    return torch.repeat_interleave(torch.arange(len(states)), torch.tensor([len(state) for state in states]))

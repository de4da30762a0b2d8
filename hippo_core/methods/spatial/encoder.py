"""The reader of place statements: one small transformer that says what a text tells of the places and the directions that it names.

    Off the old mill there is a gate to Marsh End.             places: old mill, Marsh End
    Off the [P1] there is a gate, locked now, to the [P2].     of the two places: closed
    (3) so north it was, to the [P1]. Exits: east and west.    of the place: one is there; of the directions: gone, open, open
    Which of the two, [P1] or [P2], do I reach sooner?         nearer

Places are placeholders in order of appearance, whatever they are called. It is MiniLM with a low-rank adapter (Hu et al. 2021, arXiv
2106.09685) and the heads below, fitted on the bank of place statements (recipes/place_encoder.py).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hippo_core.methods.relational.encoder import NAMED, Marked, StatementEncoder

SAYS = ("none", "link", "forward", "back", "closed", "opened", "doubt")  # of two places; forward: from the first to the second alone
ROLES = ("other", "here", "back", "seen", "stays")  # of a place in a walk; stays: where one is after a step that failed
TURNS = ("other", "gone", "fails", "open", "walled", "seen")  # what a direction is in a walk or of a link
TELLS = ("places", "walk", "neither")  # what a statement is about
ASKS = ("way", "distance", "next", "side", "where", "nearer", "reach", "thing", "none")


class PlacesRead(NamedTuple):
    """Logits for one text."""

    says: Tensor  # [P, P, S] of each two of its places, the earlier first
    stands: Tensor  # [P, P], above 0: a direction leads from the earlier place to the later one
    roles: Tensor  # [P, R]
    turns: Tensor  # [D, T]
    tells: Tensor  # [K]
    asks: Tensor  # [A]


class PlaceEncoder(StatementEncoder):
    """What tells what texts say of their places."""

    def __init__(self, body: Any) -> None:
        super().__init__(body)
        size = self.size
        self.pair = nn.Sequential(nn.Linear(3 * size, size), nn.Tanh(), nn.Linear(size, len(SAYS) + 1))
        self.role, self.turn = nn.Linear(2 * size, len(ROLES)), nn.Linear(2 * size, len(TURNS))
        self.tell, self.ask = nn.Linear(size, len(TELLS)), nn.Linear(size, len(ASKS))
        self.named = nn.Linear(size, len(NAMED))

    def name(self, texts: Sequence[Marked]) -> list[Tensor]:
        """Of texts whose names are not marked, logits of `NAMED` for each piece [T, N]: whether it is of a place."""
        states, _, _ = self.states(texts)
        return [self.named(own[: len(text.ids)]) for own, text in zip(states, texts, strict=True)]

    def forward(self, texts: Sequence[Marked], turns: Sequence[Sequence[int]]) -> list[PlacesRead]:
        """Read texts; `turns`: of each the places of its directions, as indices of its pieces."""
        states, mask, marks = self.states(texts)
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        read = []
        for row, at in enumerate(turns):
            numbers = sorted({mark for mark in texts[row].marks if mark > 0})
            of = [states[row][marks[row] == number].mean(0) for number in numbers]
            places = torch.stack(of) if of else states.new_zeros(0, self.size)
            count, mean = len(numbers), means[row]
            pairs = torch.cat(
                [places[:, None].expand(-1, count, -1), places[None].expand(count, -1, -1), mean.expand(count, count, -1)], -1
            )
            pair = self.pair(pairs)
            words = states[row][list(at)]
            read.append(
                PlacesRead(
                    pair[..., :-1],
                    pair[..., -1],
                    self.role(torch.cat([places, mean.expand(count, -1)], -1)),
                    self.turn(torch.cat([words, mean.expand(len(at), -1)], -1)),
                    self.tell(mean),
                    self.ask(mean),
                )
            )
        return read

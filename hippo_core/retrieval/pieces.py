"""Late interaction of word pieces: each piece of a cue looks for the piece of a text that is most like it, and the text counts their mean.

    score = sum over p of w_p max over t of cos(A c_p, A s_t)  /  sum over p of w_p

c and s [384] are MiniLM's last states, A [D, 384] a fitted projection, w a fitted weight of each piece of a cue (Khattab and Zaharia 2020,
arXiv 2004.12832, section 3.2, with another encoder). A piece that is not in a text is no piece too many, and one fact that differs from
another in a word is told from it by that word, where a mean over all pieces hardly changes.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus


class PieceSettings(BaseModel):
    """The shape of a projection: `hidden` numbers of a piece become `width`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: Annotated[int, Field(ge=1)]
    width: Annotated[int, Field(ge=1)] = 128


class PieceHead(nn.Module):
    """The projection, and the weight of each piece of a cue."""

    def __init__(self, settings: PieceSettings) -> None:
        super().__init__()
        self.settings = settings
        self.project = nn.Linear(settings.hidden, settings.width, bias=False)
        self.weight = nn.Linear(settings.hidden, 1)

    def forward(self, states: Tensor) -> Tensor:
        """States [T, hidden] as rows of length 1 [T, width]."""
        return normalize(self.project(states), dim=-1)

    def weights(self, states: Tensor) -> Tensor:
        """How much each piece of a cue counts, more than 0, [T]."""
        return softplus(self.weight(normalize(states, dim=-1)))[:, 0]


def matched(cue: Tensor, table: Tensor, owner: Tensor, count: int) -> Tensor:
    """For each piece of a cue the highest cosine with a piece of each text, [P, count].

    Args:
        cue: its pieces, rows of length 1, [P, width].
        table: the pieces of all texts, [T, width].
        owner: the number of the text that each of them is of, [T].
        count: how many texts there are; one without a piece has -1.
    """
    alike = cue @ table.T
    return alike.new_full((len(cue), count), -1.0).scatter_reduce(1, owner.expand(len(cue), -1), alike, "amax")

"""The reader of statements: one small transformer that says what a statement tells of two of its names, and what a question asks in order.

    statement   [N1] swears that [N2] built the [N3].      a vector for each ordered pair of names: what leads from the one to the other
    question    Where does the owner of the [N1] live?     each word's hop from the name on: the owner of the [N1]; Where does [N1] live?
    hop         the owner of the [N1]                      a vector: what leads from the name to what is asked for

Names are placeholders in order of appearance, so that nothing rests on who is called what. It is MiniLM with a low-rank adapter (Hu et al.
2021, arXiv 2106.09685) and the heads below, fitted on worlds of the bank of relations (training/path_encoder.py). A statement is read once,
whoever asks: a path is scored by products of vectors, not by a transformer that reads question and path together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad
from torch.nn.utils.rnn import pad_sequence

HOPS, NAMES, MOST = 3, 8, 96  # hops of a question; names of a text that are told apart; word pieces of a text
TOGETHER = 12  # texts that the body runs at a time
CAPITAL = -1  # the mark of a piece with a capital, in a text whose names are not marked
KINDS = ("plain", "update", "high", "middle", "low", "guess", "denial", "former")  # how a statement is told
ROLES = ("party", "teller", "old", "other")  # what a name is in a statement; old: of what is no longer so, or never was
INTENTS = ("now", "before")
NAMED = ("no", "begins", "goes on")  # whether a piece belongs to a name, in a text whose names are not marked
PAIRS = ("unrelated", "agrees", "replaces", "disputes")  # what a later statement is to an earlier one of the same name


@dataclass(frozen=True, slots=True)
class Marked:
    """A text as word pieces: `ids`; `marks`: of each piece the number of its name from 1 on, else 0, or `CAPITAL`; `places`: where it
    begins in the text, -1 for the opening and the closing one."""

    ids: tuple[int, ...]
    marks: tuple[int, ...]
    places: tuple[int, ...]

    def hops(self, tags: Sequence[int]) -> list["Marked"]:
        """The parts of a question by the hop that each of its pieces belongs to (0: none), from the name outward; in each, the parts within
        it are one name. A name belongs to the first. Empty hops are left out."""
        tags = [1 if mark == 1 else tag for tag, mark in zip(tags, self.marks, strict=True)]
        parts = []
        for hop in sorted({*tags} - {0}):
            chosen: list[int] = []
            for place, tag in enumerate(tags):
                if tag == hop:
                    chosen.append(place)
                elif 0 < tag < hop and -1 not in chosen:
                    chosen.append(-1)  # the name that stands for what is within
            ids = [self.ids[place] if place >= 0 else 0 for place in chosen]
            marks = [self.marks[place] if place >= 0 else 1 for place in chosen]
            places = [self.places[place] if place >= 0 else -1 for place in chosen]
            parts.append(Marked((self.ids[0], *ids, self.ids[-1]), (0, *marks, 0), (-1, *places, -1)))
        return parts


def partings(logits: Tensor, marked: Marked) -> list[tuple[float, tuple[int, ...]]]:
    """How a question may be cut into one, two, ... `HOPS` hops: for each number of hops that there can be the logarithm of the likelihood,
    and the hop of each piece. Hops are intervals around the name, each around the one before: the best of these by a dynamic program.

    Args:
        logits: of the hop of each piece, 0 for none [T, HOPS + 1].
    """
    size = len(marked.ids) - 2  # without the opening and the closing piece
    name = marked.marks.index(1) - 1
    likely = logits[1 : size + 1].double().log_softmax(-1).numpy()
    sums = np.concatenate([np.zeros((1, HOPS + 1)), likely.cumsum(0)])  # [size + 1, HOPS + 1]
    left, right = np.arange(size)[:, None], np.arange(size)[None]
    within = sums[right + 1] - sums[left]  # [left, right, HOPS + 1]: all pieces of an interval are of a hop
    best = np.full((size, size), -np.inf)
    best[name, name] = 0.0
    before, made = list[np.ndarray](), []
    for hop in range(1, HOPS + 1):
        gain = best - within[..., hop]
        before.append(gain)
        wider = np.maximum.accumulate(np.maximum.accumulate(gain[::-1], 0)[::-1], 1)  # of all intervals inside
        inside = np.full_like(wider, -np.inf)
        inside[:-1] = wider[1:]
        inside[:, 1:] = np.maximum(inside[:, 1:], wider[:, :-1])
        best = np.where(np.isfinite(inside), within[..., hop] + inside, -np.inf)
        total = best + within[0, -1, 0] - within[..., 0]
        if not np.isfinite(total).any():
            break
        made.append((float(total.max()), _tags(before, np.unravel_index(int(total.argmax()), total.shape), len(marked.ids))))
    return made


def _tags(gains: Sequence[np.ndarray], outer: tuple[Any, ...], length: int) -> tuple[int, ...]:
    """The hop of each piece where the last hop is this interval; `gains`: of each hop, what the interval inside it may be worth."""
    tags = [0] * length
    left, right = map(int, outer)
    for hop in range(len(gains), 0, -1):
        gain = np.full_like(gains[hop - 1], -np.inf)
        gain[left : right + 1, left : right + 1] = gains[hop - 1][left : right + 1, left : right + 1]
        gain[left, right] = -np.inf
        inner = np.unravel_index(int(gain.argmax()), gain.shape)
        for place in (*range(left, int(inner[0])), *range(int(inner[1]) + 1, right + 1)):
            tags[place + 1] = hop
        left, right = int(inner[0]), int(inner[1])
    tags[left + 1] = 1
    return tuple(tags)


class Marker:
    """Texts as word pieces with placeholders."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.pad, self._begin, self._end = tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id

    def unmarked(self, texts: Sequence[str]) -> list[Marked]:
        """Texts whose names are not marked, but their capitals."""
        made = self([(text, ()) for text in texts])
        marks = [[CAPITAL * (place >= 0 and text[place].isupper()) for place in one.places] for text, one in zip(texts, made, strict=True)]
        return [Marked(one.ids, tuple(own), one.places) for one, own in zip(made, marks, strict=True)]

    def __call__(self, texts: Sequence[tuple[str, Sequence[tuple[int, int, int]]]]) -> list[Marked]:
        """Each text with its names (start, end, number from 1 on, in order of place)."""
        between = [piece for text, names in texts for piece in _between(text, names)]
        if not between:
            return []
        read = self._tokenizer([text for text, _ in between], add_special_tokens=False, return_offsets_mapping=True)
        pieces = iter(zip(read["input_ids"], read["offset_mapping"], (start for _, start in between), strict=True))
        made = []
        for _, names in texts:
            ids, marks, places = [self._begin], [0], [-1]
            for name in (*names, None):
                own, offsets, start = next(pieces)
                ids += own
                marks += [0] * len(own)
                places += [start + offset for offset, _ in offsets]
                if name:
                    ids.append(self.pad)
                    marks.append(min(name[2], NAMES))
                    places.append(name[0])
            made.append(Marked((*ids[: MOST - 1], self._end), (*marks[: MOST - 1], 0), (*places[: MOST - 1], -1)))
        return made


def _between(text: str, names: Sequence[tuple[int, int, int]]) -> list[tuple[str, int]]:
    """What stands between names, and where it begins."""
    starts, ends = [0, *(end for _, end, _ in names)], [*(start for start, _, _ in names), len(text)]
    return [(text[start:end], start) for start, end in zip(starts, ends, strict=True)]


class PathEncoder(nn.Module):
    """`body`: MiniLM; what reads `Marked` texts, and the heads over its states."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body: Any = body
        size: int = body.config.hidden_size
        self.marks = nn.Embedding(NAMES + 1, size)
        nn.init.normal_(self.marks.weight, std=0.05)
        self.capital = nn.Parameter(torch.zeros(size))
        self.start, self.end, self.text, self.asked = (nn.Linear(size, size) for _ in range(4))
        for head in (self.text, self.asked):  # begin with the likeness that the body was trained for
            nn.init.eye_(head.weight)
        for head in (self.start, self.end):
            nn.init.normal_(head.weight, std=0.01)
        self.tag, self.intent = nn.Linear(size, HOPS + 1), nn.Linear(size, len(INTENTS))
        self.named = nn.Linear(size, len(NAMED))
        self.kind, self.role = nn.Linear(size, len(KINDS)), nn.Linear(size, len(ROLES))
        self.pair = nn.Sequential(nn.Linear(4 * size + 1, 128), nn.GELU(), nn.Linear(128, len(PAIRS)))
        self.scale = nn.Parameter(torch.tensor(10.0))

    def states(self, texts: Sequence[Marked]) -> tuple[Tensor, Tensor, Tensor]:
        """The last states of each text's pieces [B, T, D], where they are [B, T], and their marks [B, T]."""
        device = self.marks.weight.device
        ids = pad_sequence([torch.tensor(one.ids) for one in texts], batch_first=True).to(device)
        marks = pad_sequence([torch.tensor(one.marks) for one in texts], batch_first=True).to(device)
        sizes = [len(one.ids) for one in texts]
        mask = torch.arange(ids.shape[1], device=device) < torch.tensor(sizes, device=device)[:, None]
        words = self.body.get_input_embeddings()(ids)
        words = torch.where((marks > 0)[..., None], self.marks(marks.clamp(min=0)), words) + (marks == CAPITAL)[..., None] * self.capital
        order = sorted(range(len(texts)), key=lambda row: sizes[row])
        states: dict[int, Tensor] = {}
        for first in range(0, len(order), TOGETHER):  # of like length, so that little is padded
            rows = order[first : first + TOGETHER]
            longest = sizes[rows[-1]]
            made = self.body(inputs_embeds=words[rows, :longest], attention_mask=mask[rows, :longest].long()).last_hidden_state
            states |= dict(zip(rows, pad(made, (0, 0, 0, ids.shape[1] - longest)), strict=True))
        return torch.stack([states[row] for row in range(len(texts))]), mask, marks

    def read(self, texts: Sequence[Marked]) -> list["Statement"]:
        """What statements say."""
        states, mask, marks = self.states(texts)
        mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        out = []
        text, kind = self.text(mean), self.kind(mean)
        for row in range(len(texts)):
            numbers = sorted({int(mark) for mark in marks[row].tolist() if mark > 0})
            of = [states[row][marks[row] == number].mean(0) for number in numbers]
            names = torch.stack(of) if of else states.new_zeros(0, states.shape[-1])
            out.append(Statement(tuple(numbers), self.start(names), self.end(names), text[row], kind[row], self.role(names)))
        return out

    def name(self, texts: Sequence[Marked]) -> Tensor:
        """Logits of `NAMED` for each piece of texts whose names are not marked [B, T, N]."""
        return self.named(self.states(texts)[0])

    def part(self, questions: Sequence[Marked]) -> tuple[Tensor, Tensor]:
        """Logits of the hop that each piece of a question belongs to [B, T, H + 1], and of `INTENTS` [B, I]."""
        states, _, _ = self.states(questions)
        return self.tag(states), self.intent(states[:, 0])

    def ask(self, hops: Sequence[Marked]) -> Tensor:
        """Unit vectors of what single hops ask [B, W]."""
        states, mask, _ = self.states(hops)
        return normalize(self.asked((states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)), dim=-1)

    def judge(self, one: Tensor, other: Tensor, same: Tensor) -> Tensor:
        """Logits of `PAIRS` for two vectors [N, W] of which the other is told later; `same`: whether both end at the same name [N]."""
        return self.pair(torch.cat([one, other, one * other, (one - other).abs(), same[:, None].to(one.dtype)], -1))


@dataclass(slots=True)
class Statement:
    """What a statement says: vectors of its names (`numbers`) as starts and ends [M, W], of its text [W], logits of `KINDS` and, for each
    name, of `ROLES`."""

    numbers: tuple[int, ...]
    starts: Tensor
    ends: Tensor
    text: Tensor
    kind: Tensor
    roles: Tensor

    def leads(self) -> Tensor:
        """Unit vectors of what leads from each name to each other one [M, M, W]."""
        return normalize(self.starts[:, None] + self.ends[None] + self.text, dim=-1)

    def standing(self) -> Tensor:
        """How likely each two names are those of which something is said as it is now, not who tells it nor what is no longer so:
        logarithms [M, M]."""
        of = self.roles.detach().log_softmax(-1)[:, [ROLES.index("party"), ROLES.index("other")]].logsumexp(-1)
        return of[:, None] + of[None]

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

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

HOPS, NAMES, MOST = 3, 8, 96  # hops of a question; names of a text that are told apart; word pieces of a text
KINDS = ("plain", "update", "high", "middle", "low", "guess", "denial", "former")  # how a statement is told
ROLES = ("party", "teller", "old", "other")  # what a name is in a statement; old: of what is no longer so, or never was
INTENTS = ("now", "before")
PAIRS = ("unrelated", "agrees", "replaces", "disputes")  # what a later statement is to an earlier one of the same name
WIDTH = 256


@dataclass(frozen=True, slots=True)
class Marked:
    """A text as word pieces: `ids`; `marks`: of each piece the number of its name from 1 on, else 0; `places`: where it begins in the text,
    -1 for the opening and the closing one."""

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


class Marker:
    """Texts as word pieces with placeholders."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.pad, self._begin, self._end = tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id

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

    def __init__(self, body: Any, width: int = WIDTH) -> None:
        super().__init__()
        self.body: Any = body
        size: int = body.config.hidden_size
        self.marks = nn.Embedding(NAMES + 1, size)
        nn.init.normal_(self.marks.weight, std=0.05)
        self.start, self.end, self.text = (nn.Linear(size, width) for _ in range(3))
        self.asked = nn.Linear(size, width)
        self.tag, self.intent = nn.Linear(size, HOPS + 1), nn.Linear(size, len(INTENTS))
        self.kind, self.role = nn.Linear(size, len(KINDS)), nn.Linear(size, len(ROLES))
        self.pair = nn.Sequential(nn.Linear(4 * width + 1, 128), nn.GELU(), nn.Linear(128, len(PAIRS)))
        self.scale = nn.Parameter(torch.tensor(10.0))

    def states(self, texts: Sequence[Marked]) -> tuple[Tensor, Tensor, Tensor]:
        """The last states of each text's pieces [B, T, D], where they are [B, T], and their marks [B, T]."""
        device = self.marks.weight.device
        ids = pad_sequence([torch.tensor(one.ids) for one in texts], batch_first=True).to(device)
        marks = pad_sequence([torch.tensor(one.marks) for one in texts], batch_first=True).to(device)
        lengths = torch.tensor([len(one.ids) for one in texts], device=device)[:, None]
        mask = torch.arange(ids.shape[1], device=device) < lengths
        words = self.body.get_input_embeddings()(ids)
        words = torch.where((marks > 0)[..., None], self.marks(marks), words)
        return self.body(inputs_embeds=words, attention_mask=mask.long()).last_hidden_state, mask, marks

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

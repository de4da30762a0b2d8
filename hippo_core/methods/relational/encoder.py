"""The reader of statements: one small transformer that says what a statement tells of two of its names, and what a question asks in order.

    statement   [N1] swears that [N2] built the [N3].      a vector for each ordered pair of names: what leads from the one to the other
    question    Where does the owner of the [N1] live?     each word's hop from the name on: the owner of the [N1]; Where does [N1] live?
    hop         the owner of the [N1]                      a vector: what leads from the name to what is asked for

Names are placeholders in order of appearance, to which what they are called adds little. The three encoders, of which one tags, one cuts
questions and one compares, are MiniLM with a low-rank adapter (Hu et al. 2021, arXiv 2106.09685) and the heads below, fitted on worlds of
the bank of relations (recipes/path_encoder.py). A hop is compared with a pair of a statement's names by the product of two vectors, and
with its words by late interaction (Khattab and Zaharia 2020, arXiv 2004.12832, section 3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, normalize, pad
from torch.nn.utils.rnn import pad_sequence

from hippo_core.methods.relational.mentions import COMMON

HOPS, NAMES, MOST = 3, 8, 96  # hops of a question; names of a text that are told apart; word pieces of a text
WORD = 128  # of a word's vector
BATCH = 12  # texts that the body runs at a time
CAPITAL = -1  # the mark of a piece with a capital, in a text whose names are not marked
KINDS = ("plain", "update", "high", "middle", "low", "guess", "denial", "former")  # of statements
ROLES = ("party", "teller", "old", "other")  # what a name is in a statement; old: of what is no longer so, or never was
INTENTS = ("now", "before")
NAMED = ("no", "begins", "goes on")  # whether a piece belongs to a name, in a text whose names are not marked


@dataclass(frozen=True, slots=True)
class Marked:
    """A text as word pieces."""

    ids: tuple[int, ...]
    marks: tuple[int, ...]  # of each piece the number of its name from 1 on, else 0, or `CAPITAL`
    starts: tuple[int, ...]  # where each begins in the text, -1 for the opening and the closing one
    named: tuple[tuple[int, ...], ...] = ()  # the pieces of each name that was marked, by number

    def hops(self, tags: Sequence[int]) -> list["Marked"]:
        """The parts of a question by the hop that each of its pieces belongs to (0: none), from the name outward; in each, the parts within
        it are one name. A name belongs to the first. Empty hops are left out."""
        tags = [1 if mark == 1 else tag for tag, mark in zip(tags, self.marks, strict=True)]
        parts = []
        for hop in sorted({*tags} - {0}):
            chosen: list[int] = []
            for index, tag in enumerate(tags):
                if tag == hop:
                    chosen.append(index)
                elif 0 < tag < hop and -1 not in chosen:
                    chosen.append(-1)  # the name that stands for what is within
            ids = [self.ids[index] if index >= 0 else 0 for index in chosen]
            marks = [self.marks[index] if index >= 0 else 1 for index in chosen]
            starts = [self.starts[index] if index >= 0 else -1 for index in chosen]
            within = self.named if -1 not in chosen else ((), *self.named[1:])
            parts.append(Marked((self.ids[0], *ids, self.ids[-1]), (0, *marks, 0), (-1, *starts, -1), within))
        return parts


def cuts(logits: Tensor, marked: Marked, doubt: float = 0.0, most: int = 1) -> list[tuple[float, tuple[int, ...]]]:
    """How a question may be cut into one, two, ... `HOPS` hops, likeliest first: the logarithm of each cut's likelihood, and the hop of
    each piece. Hops are intervals around the name, each around the one before. All cuts that are at most `doubt` less likely than the best
    one, `most` of them: intervals are chosen from without to within, by the best of what may lie within (A*, Hart et al. 1968). `logits`:
    of the hop of each piece, 0 for none [T, HOPS + 1]."""
    size = len(marked.ids) - 2  # without the opening and the closing piece
    name = marked.marks.index(1) - 1
    likely = logits[1 : size + 1].double().log_softmax(-1).numpy()
    sums = np.concatenate([np.zeros((1, HOPS + 1)), likely.cumsum(0)])  # [size + 1, HOPS + 1]
    left, right = np.arange(size)[:, None], np.arange(size)[None]
    within = sums[right + 1] - sums[left]  # [left, right, HOPS + 1]: all pieces of an interval are of a hop
    best = np.full((HOPS + 1, size, size), -np.inf)  # of an interval whose outer hop is this: the most that all its pieces are worth
    best[0, name, name] = 0.0
    for hop in range(1, HOPS + 1):
        gain = best[hop - 1] - within[..., hop]
        wider = np.maximum.accumulate(np.maximum.accumulate(gain[::-1], 0)[::-1], 1)  # of all intervals inside
        inside = np.full_like(wider, -np.inf)
        inside[:-1] = wider[1:]
        inside[:, 1:] = np.maximum(inside[:, 1:], wider[:, :-1])
        best[hop] = np.where(np.isfinite(inside), within[..., hop] + inside, -np.inf)
    without = within[0, -1, 0] - within[..., 0]
    least = float((best[1:] + without).max()) - doubt
    waiting: list[tuple[float, int, float, Intervals]] = []

    def wait(hop: int, worth: np.ndarray, outer: Intervals) -> None:
        """That an interval of this hop comes next; worth: what all that lies without it is worth [left, right]."""
        for start, end in np.argwhere(best[hop] + worth >= least - 1e-9).tolist():
            heappush(waiting, (-float(best[hop, start, end] + worth[start, end]), hop, float(worth[start, end]), (*outer, (start, end))))

    for hop in range(1, HOPS + 1):
        wait(hop, without, ())
    made: list[tuple[float, tuple[int, ...]]] = []
    while waiting and len(made) < most:
        worth, hop, outside, intervals = heappop(waiting)
        if not hop:
            made.append((-worth, _hops(intervals, len(marked.ids))))
            continue
        start, end = intervals[-1]
        inner = np.full((size, size), -np.inf)
        part = slice(start, end + 1), slice(start, end + 1)
        inner[part] = outside + within[start, end, hop] - within[(*part, hop)]
        inner[start, end] = -np.inf
        wait(hop - 1, inner, intervals)
    return made


Intervals = tuple[tuple[int, int], ...]  # from without to within, the last one the name alone


def _hops(intervals: Intervals, length: int) -> tuple[int, ...]:
    """The hop of each piece."""
    tags = [0] * length
    for hop, (left, right) in zip(range(len(intervals) - 1, 0, -1), intervals, strict=False):
        tags[left + 1 : right + 2] = [hop] * (right + 1 - left)
    return tuple(tags)


class Marker:
    """Texts as word pieces with placeholders."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.pad, self._begin, self._end = tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id
        self._common = {*tokenizer.convert_tokens_to_ids(sorted(COMMON)), *tokenizer.all_special_ids}

    def content(self, text: Marked) -> list[int]:
        """The pieces of a text that are neither names nor common words nor marks between words."""
        words = zip(text.ids, self._tokenizer.convert_ids_to_tokens(text.ids), text.marks, strict=True)
        return [
            piece for piece, word, mark in words if mark <= 0 and piece not in self._common and word.lstrip("#").isalpha() and len(word) > 1
        ]

    def unmarked(self, texts: Sequence[str]) -> list[Marked]:
        """Texts whose names are not marked, but their capitals."""
        made = self([(text, ()) for text in texts])
        marks = [
            [CAPITAL * (start >= 0 and text[start].isupper()) for start in marked.starts] for text, marked in zip(texts, made, strict=True)
        ]
        return [Marked(marked.ids, tuple(own), marked.starts) for marked, own in zip(made, marks, strict=True)]

    def __call__(self, texts: Sequence[tuple[str, Sequence[tuple[int, int, int]]]]) -> list[Marked]:
        """Each text with its names (start, end, number from 1 on, in order of position)."""
        between = [piece for text, names in texts for piece in _between(text, names)]
        if not between:
            return []
        read = self._tokenizer([text for text, _ in between], add_special_tokens=False, return_offsets_mapping=True)
        called = {text[start:end] for text, names in texts for start, end, _ in names}
        pieces_of = dict(zip(called, self._tokenizer([*called], add_special_tokens=False)["input_ids"], strict=True)) if called else {}
        pieces = iter(zip(read["input_ids"], read["offset_mapping"], (start for _, start in between), strict=True))
        made = []
        for text, names in texts:
            ids, marks, offsets_in_text = [self._begin], [0], [-1]
            named = {number: tuple(pieces_of[text[start:end]]) for start, end, number in reversed(names) if number <= NAMES}
            for name in (*names, None):
                own, offsets, start = next(pieces)
                ids += own
                marks += [0] * len(own)
                offsets_in_text += [start + offset for offset, _ in offsets]
                if name:
                    ids.append(self.pad)
                    marks.append(min(name[2], NAMES))
                    offsets_in_text.append(name[0])
            of = tuple(named.get(number, ()) for number in range(1, max(named, default=0) + 1))
            made.append(Marked((*ids[: MOST - 1], self._end), (*marks[: MOST - 1], 0), (*offsets_in_text[: MOST - 1], -1), of))
        return made


def _between(text: str, names: Sequence[tuple[int, int, int]]) -> list[tuple[str, int]]:
    """What stands between names, and where it begins."""
    starts, ends = [0, *(end for _, end, _ in names)], [*(start for start, _, _ in names), len(text)]
    return [(text[start:end], start) for start, end in zip(starts, ends, strict=True)]


class StatementEncoder(nn.Module):
    """What reads `Marked` texts. `body`: MiniLM, of which the names are taken in their places."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body: Any = body
        self.size: int = body.config.hidden_size
        self.marks = nn.Embedding(NAMES + 1, self.size)
        nn.init.normal_(self.marks.weight, std=0.05)
        self.capital = nn.Parameter(torch.zeros(self.size))

    def states(self, texts: Sequence[Marked]) -> tuple[Tensor, Tensor, Tensor]:
        """The last states of each text's pieces [B, T, D], where they are [B, T], and their marks [B, T]."""
        device = self.marks.weight.device
        ids = pad_sequence([torch.tensor(text.ids) for text in texts], batch_first=True).to(device)
        marks = pad_sequence([torch.tensor(text.marks) for text in texts], batch_first=True).to(device)
        sizes = [len(text.ids) for text in texts]
        mask = torch.arange(ids.shape[1], device=device) < torch.tensor(sizes, device=device)[:, None]
        words = self.body.get_input_embeddings()(ids)
        placeholders = self.marks(marks.clamp(min=0)) + self.called(texts, marks)
        words = torch.where((marks > 0)[..., None], placeholders, words) + (marks == CAPITAL)[..., None] * self.capital
        order = sorted(range(len(texts)), key=lambda row: sizes[row])
        states: dict[int, Tensor] = {}
        for first in range(0, len(order), BATCH):  # of like length, so that little is padded
            rows = order[first : first + BATCH]
            longest = sizes[rows[-1]]
            made = self.body(inputs_embeds=words[rows, :longest], attention_mask=mask[rows, :longest].long()).last_hidden_state
            states |= dict(zip(rows, pad(made, (0, 0, 0, ids.shape[1] - longest)), strict=True))
        return torch.stack([states[row] for row in range(len(texts))]), mask, marks

    def called(self, texts: Sequence[Marked], marks: Tensor) -> Tensor:
        """What a name's spelling adds to its placeholder [B, T, D]; marks [B, T]."""
        return self.capital.new_zeros(1, 1, 1)


class Tagger(StatementEncoder):
    """Finds names in a text whose names are not marked, the role of each, and the kind of statement."""

    def __init__(self, body: Any) -> None:
        super().__init__(body)
        self.named, self.role, self.kind = (nn.Linear(self.size, len(of)) for of in (NAMED, ROLES, KINDS))

    def forward(self, texts: Sequence[Marked]) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of `NAMED` and of `ROLES` for each piece [B, T, N], and of `KINDS` for each text [B, K]."""
        states, mask, _ = self.states(texts)
        return self.named(states), self.role(states), self.kind((states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


class Cutter(StatementEncoder):
    """Assigns each piece of a question to a hop, and says which time it asks about."""

    def __init__(self, body: Any) -> None:
        super().__init__(body)
        self.hop, self.intent = nn.Linear(self.size, HOPS + 1), nn.Linear(self.size, len(INTENTS))

    def forward(self, questions: Sequence[Marked]) -> tuple[Tensor, Tensor]:
        """Logits of the hop that each piece belongs to [B, T, H + 1], and of `INTENTS` [B, I]."""
        states, _, _ = self.states(questions)
        return self.hop(states), self.intent(states[:, 0])


class PathEncoder(StatementEncoder):
    """Encodes what statements say of each two of their names, and what single hops of a question ask."""

    def __init__(self, body: Any) -> None:
        super().__init__(body)
        size = self.size
        self.start, self.end, self.text, self.asked = (nn.Linear(size, size) for _ in range(4))
        for head in (self.text, self.asked):  # begin with the likeness that the body was trained for
            nn.init.eye_(head.weight)
        for head in (self.start, self.end):
            nn.init.normal_(head.weight, std=0.01)
        self.word, self.name = nn.Linear(size, WORD), nn.Linear(size, size)
        nn.init.normal_(self.name.weight, std=0.02)
        self.scale, self.fine = nn.Parameter(torch.tensor(10.0)), nn.Parameter(torch.tensor(5.0))

    def called(self, texts: Sequence[Marked], marks: Tensor) -> Tensor:
        """The mean of the name's input embeddings, projected: it tells a person from a ship. Training drops a third of them."""
        rows = [(row, number, ids) for row, text in enumerate(texts) for number, ids in enumerate(text.named, 1) if ids]
        if self.training:
            rows = [text for text, kept in zip(rows, (torch.rand(len(rows)) > 1 / 3).tolist(), strict=True) if kept]
        table = self.capital.new_zeros(len(texts), NAMES + 1, self.size)
        if rows:
            pieces = torch.tensor([piece for *_, ids in rows for piece in ids], device=marks.device)
            begins = torch.tensor([0, *accumulate(len(ids) for *_, ids in rows)][:-1], device=marks.device)
            means = embedding_bag(pieces, self.body.get_input_embeddings().weight.detach(), begins, mode="mean")
            at = torch.tensor([(row, number) for row, number, _ in rows], device=marks.device)
            table = table.index_put((at[:, 0], at[:, 1]), self.name(means))
        return table.gather(1, marks.clamp(min=0)[..., None].expand(-1, -1, self.size))

    def read(self, texts: Sequence[Marked]) -> list["EncodedStatement"]:
        """What statements say."""
        states, mask, marks = self.states(texts)
        mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        out = []
        text, words = self.text(mean), self._words(states, texts)
        for row in range(len(texts)):
            numbers = sorted({int(mark) for mark in marks[row].tolist() if mark > 0})
            of = [states[row][marks[row] == number].mean(0) for number in numbers]
            names = torch.stack(of) if of else states.new_zeros(0, states.shape[-1])
            out.append(EncodedStatement(tuple(numbers), self.start(names), self.end(names), text[row], words[row]))
        return out

    def ask(self, hops: Sequence[Marked]) -> tuple[Tensor, list[Tensor]]:
        """What single hops ask: vectors as long as `scale` says [B, W], and their words [T, D]."""
        states, mask, _ = self.states(hops)
        vectors = normalize(self.asked((states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)), dim=-1)
        return self.scale * vectors, self._words(states, hops)

    def _words(self, states: Tensor, texts: Sequence[Marked]) -> list[Tensor]:
        """Unit vectors of each text's pieces that are no names [T, D]."""
        vectors = normalize(self.word(states), dim=-1)
        return [own[[index for index, mark in enumerate(text.marks) if mark <= 0]] for own, text in zip(vectors, texts, strict=True)]

    def similarity(self, asked: Sequence[Tensor], statements: Sequence[Tensor]) -> Tensor:
        """How well each statement covers each hop's words: the mean over these of the largest cosine, scaled [B, S]."""
        known = pad_sequence(list(statements), batch_first=True)
        there = (
            torch.arange(known.shape[1], device=known.device)
            < torch.tensor([len(words) for words in statements], device=known.device)[:, None]
        )
        rows = []
        for words in asked:
            likes = torch.einsum("hd,std->sht", words, known).masked_fill(~there[:, None], -1.0)
            rows.append(likes.amax(-1).mean(-1))
        return self.fine * torch.stack(rows)


@dataclass(slots=True)
class EncodedStatement:
    """What a statement says: vectors of its names (`numbers`) as starts and ends [M, W], of its text [W] and of its words [T, D]."""

    numbers: tuple[int, ...]
    starts: Tensor
    ends: Tensor
    text: Tensor
    words: Tensor

    def leads(self) -> Tensor:
        """Unit vectors of what leads from each name to each other one [M, M, W]."""
        return normalize(self.starts[:, None] + self.ends[None] + self.text, dim=-1)

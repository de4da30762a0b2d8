"""Reading statements and questions in anyone's words by a fitted encoder (encoder.py); what was read is kept."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hippo_core.methods.relational.encoder import (
    INTENTS,
    KINDS,
    ROLES,
    Cutter,
    EncodedStatement,
    Marked,
    Marker,
    PathEncoder,
    Tagger,
    cuts,
)
from hippo_core.methods.relational.name_finder import NameSpan, tagged_spans
from hippo_core.models import minilm
from hippo_core.models.adapted_minilm import shipped

FIT = "python -m recipes.path_encoder"
DOUBT, CUTS = 3.0, 12  # by how much less likely a cut may be than the likeliest one, as a logarithm, to be tried; how many are, at most
CONFIDENCE_BY_KIND = {"high": 0.9, "middle": 0.6, "low": 0.3, "guess": 0.1, "plain": None, "update": None}  # None: plain
CHANGES = [KINDS.index(kind) for kind in ("update", "denial", "former")]
STANDING = [ROLES.index("party"), ROLES.index("other")]  # of whom something is said as it is now
LEAST = -8.0  # the least that a doubt of it counts


@cache
def fitted_reader(device: str = "cpu") -> "StatementReader":
    """The shipped reader. LabError where MiniLM or it is missing, damaged, or of another MiniLM."""
    tokenizer, _ = minilm.copied(device)
    model = shipped("statements", PathEncoder, FIT, device)
    return StatementReader(model, shipped("tags", Tagger, FIT, device), shipped("cuts", Cutter, FIT, device), Marker(tokenizer))


class Tagged(NamedTuple):
    """Where a text has names, the log-likelihoods of their `ROLES`, the kind of statement, and how likely it is one of `CHANGES`."""

    spans: list[tuple[int, int]]
    roles: dict[tuple[int, int], Tensor]
    kind: str
    change: float = 0.0


@dataclass
class ReadStatement:
    """A statement as it was read."""

    names: dict[str, str]  # as they stand in it, by key
    leads: Tensor  # what leads from each name to each other [M, M, W]
    standing: Tensor  # how likely that stands [M, M]
    words: Tensor  # [T, D]
    kind: str
    roles: dict[str, str]  # of each name

    @property
    def teller(self) -> str:
        """The key of who tells it; "" where nobody does."""
        return next((name for name, role in self.roles.items() if role == "teller"), "")


class ChainQuery(NamedTuple):
    """What a question may ask from one of its names on."""

    start: str
    hops: Tensor  # as vectors [H, W]
    words: list[Tensor]  # of each hop [T, D]
    likely: float  # how likely it is cut so, as a logarithm
    before: bool  # whether it asks of what was so before


@dataclass
class StatementReader:
    """The fitted encoders. What was read is kept."""

    model: PathEncoder
    tagger: Tagger
    cutter: Cutter
    marker: Marker
    batch: int = 32
    tagged: dict[str, Tagged] = field(default_factory=dict)
    kept: dict[tuple[str, tuple[NameSpan, ...]], ReadStatement] = field(default_factory=dict)

    @torch.inference_mode()
    def tag(self, texts: Sequence[str]) -> list[Tagged]:
        """These texts, tagged."""
        for part in self._batches({text for text in texts if text not in self.tagged}):
            marked = self.marker.unmarked(part)
            for text, marked_text, named, roles, kind in zip(part, marked, *self.tagger(marked), strict=True):
                size = len(marked_text.ids)
                spans = tagged_spans(text, marked_text.starts, named[:size].argmax(-1).tolist())
                at = {start: row for row, start in enumerate(marked_text.starts)}
                of = {span: roles[at[span[0]]].log_softmax(-1) for span in spans if span[0] in at}
                change = float(kind.softmax(-1)[CHANGES].sum())
                self.tagged[text] = Tagged(spans, of, KINDS[int(kind.argmax())], change)
        return [self.tagged[text] for text in texts]

    def names(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Where each of these has names."""
        return [tagged.spans for tagged in self.tag(texts)]

    @torch.inference_mode()
    def read(self, texts: Sequence[str], names: Sequence[Sequence[NameSpan]]) -> list[ReadStatement]:
        """These statements, of which each has these names."""
        keys = [(text, tuple(own)) for text, own in zip(texts, names, strict=True)]
        new = dict(key for key in keys if key not in self.kept)
        self.tag([*new])
        for part in self._batches(new):
            marked = self.marker([(text, _numbered(new[text])) for text in part])
            for text, encoded in zip(part, self.model.read(marked), strict=True):
                self.kept[text, new[text]] = _as_read(text, new[text], encoded, self.tagged[text])
        return [self.kept[key] for key in keys]

    def _batches(self, texts: Set[str] | Mapping[str, object]) -> list[list[str]]:
        order = sorted(texts, key=lambda text: (len(text), text))
        return [order[first : first + self.batch] for first in range(0, len(order), self.batch)]

    @torch.inference_mode()
    def ask(self, question: str, names: Sequence[NameSpan], starts: Sequence[str]) -> list[ChainQuery]:
        """What a question may ask from each of these of its names on, the likelier numbers of hops alone."""
        marked = self.marker([(question, _numbered(names, start)) for start in starts])
        tags, intents = self.cutter(marked)
        before = (intents.argmax(-1) == INTENTS.index("before")).tolist()
        cut: list[tuple[int, float, list[Marked]]] = []
        for row, (marked_question, tag) in enumerate(zip(marked, tags, strict=True)):
            likely_cuts = cuts(tag[: len(marked_question.ids)], marked_question, DOUBT, CUTS)
            total = float(np.logaddexp.reduce([likely for likely, _ in likely_cuts]))
            cut += [(row, likely - total, marked_question.hops(tag)) for likely, tag in likely_cuts]
        each = list(dict.fromkeys(hop for *_, hops in cut for hop in hops))
        read = dict(zip(each, zip(*self.model.ask(each), strict=True), strict=True))
        return [
            ChainQuery(starts[row], torch.stack([read[hop][0] for hop in hops]), [read[hop][1] for hop in hops], likely, before[row])
            for row, likely, hops in cut
        ]


def _numbered(names: Sequence[NameSpan], first: str = "") -> list[tuple[int, int, int]]:
    order = {key: number for number, key in enumerate(dict.fromkeys([*[first] * bool(first), *(span.key for span in names)]), 1)}
    return [(span.start, span.end, order[span.key]) for span in names]


def _as_read(text: str, names: Sequence[NameSpan], encoded: EncodedStatement, tagged: Tagged) -> ReadStatement:
    words = {span.key: text[span.start : span.end] for span in reversed(names)}
    keys = list(dict.fromkeys(span.key for span in names))[: len(encoded.numbers)]  # further ones stand behind what was read
    likely = {span.key: tagged.roles[span.start, span.end] for span in reversed(names) if (span.start, span.end) in tagged.roles}
    roles = {key: ROLES[int(likely[key].argmax())] if key in likely else "party" for key in keys}
    stands = (
        torch.stack([likely[key][STANDING].logsumexp(0) if key in likely else torch.zeros(()) for key in keys]) if keys else torch.zeros(0)
    )
    standing = (stands[:, None] + stands[None]).clamp(min=LEAST)
    return ReadStatement({key: words[key] for key in keys}, encoded.leads(), standing, encoded.words, tagged.kind, roles)

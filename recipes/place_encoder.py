"""Fitting the reader of place statements (methods/spatial/encoder.py) on the bank of places and data/reading."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from hippo_core.methods.relational.encoder import Marked, Marker
from hippo_core.methods.spatial.encoder import SAYS, TELLS, PlaceEncoder, PlacesRead
from hippo_core.models import minilm
from hippo_core.training.train import Log
from recipes.path_encoder import EncoderTrainee, PathRecipe, fit_encoder
from recipes.place_bank import digest
from recipes.place_lessons import PlaceLessons, Text

FIT = "python -m recipes.place_encoder"
RECIPE = PathRecipe(part="places", steps=1600, second=800, rate=4e-4, head_rate=1e-3, warmup=40)
TEXTS = 24  # of a step
HIDDEN = 0.15  # of the pieces of a text


def marked(texts: Sequence[Text], marker: Marker) -> tuple[list[Marked], list[list[int]]]:
    """The pieces of texts, and where the directions of each are among them."""
    spans = []
    for text in texts:
        numbers = {place: number for number, place in enumerate(text.places, 1)}
        spans.append((text.text, [(start, end, numbers[place]) for start, end, place in text.marks]))
    made = marker(spans)
    return made, [
        [pieces.starts.index(start) for start, _ in text.turns if start in pieces.starts] for text, pieces in zip(texts, made, strict=True)
    ]


def named(text: Text, pieces: Marked) -> list[int]:
    """Whether each piece of a text whose names are not marked begins the name of a place (1), is of one (2), or of none (0)."""
    of = [next(((start, end) for start, end, _ in text.spans if start <= position < end), None) for position in pieces.starts]
    return [
        0 if span is None or position < 0 else 1 if position == span[0] else 2 for position, span in zip(pieces.starts, of, strict=True)
    ]


def says_of(text: Text) -> list[tuple[int, int, int]]:
    """For each pair of places, the earlier first, the label of their link, as an index of `SAYS`."""
    labels = []
    for (i, a), (j, b) in combinations(enumerate(text.places), 2):
        says = text.says.get((a, b)) or {"forward": "back"}.get(inverse := text.says.get((b, a), "none"), inverse)
        labels.append((i, j, SAYS.index(says)))
    return labels


def stands_of(text: Text) -> list[tuple[int, int, float]]:
    """Of two places between which a direction leads, or a way is asked for, whether it begins at the earlier one."""
    pairs = combinations(enumerate(text.places), 2)
    return [(i, j, float(text.stands[both] == a)) for (i, a), (j, b) in pairs if (both := frozenset((a, b))) in text.stands]


def _without_words(text: Marked, turns: Sequence[int], mask: int, random: Random) -> Marked:
    """The text with some of its pieces hidden, which are neither places nor directions, so that no single word of a frame decides."""
    hidden = {at for at in range(1, len(text.ids) - 1) if text.marks[at] == 0 and at not in turns and random.random() < HIDDEN}
    return replace(text, ids=tuple(mask if at in hidden else piece for at, piece in enumerate(text.ids)))


class PlaceTrainee(EncoderTrainee[PlaceEncoder]):
    """The reader of place statements: some texts a step."""

    encoder = PlaceEncoder

    def __init__(self, recipe: PathRecipe, body: Any, marker: Marker) -> None:
        super().__init__(recipe, body, marker)
        self.lessons = PlaceLessons("train", recipe.seed)
        self.mask = minilm.copied()[0].mask_token_id
        of = {"": PlaceLessons("val", 1), "unseen ": PlaceLessons("val", 1, unseen=True)}
        self._exam = {name: [lessons(number) for number in range(240)] for name, lessons in of.items()}

    def loss(self, step: int) -> tuple[Tensor, Log]:
        texts = [self.lessons(TEXTS * step + number) for number in range(TEXTS)]
        made, turns = marked(texts, self.marker)
        random = Random(f"words {self.recipe.seed} {step}")
        made = [_without_words(pieces, at, self.mask, random) for pieces, at in zip(made, turns, strict=True)]
        read = self.model(made, turns)
        parts = defaultdict[str, list[tuple[Tensor, int]]](list)
        stands: list[tuple[Tensor, float]] = []
        for text, reading, at in zip(texts, read, turns, strict=True):
            parts["says"] += [(reading.says[i, j], says) for i, j, says in says_of(text)]
            stands += [(reading.stands[i, j], first) for i, j, first in stands_of(text)]
            parts["roles"] += [
                (reading.roles[number], role) for number, place in enumerate(text.places) if (role := text.roles.get(place)) is not None
            ]
            parts["turns"] += [(logits, turn) for logits, (_, turn) in zip(reading.turns, text.turns[: len(at)], strict=True)]
            parts["tells"].append((reading.tells, text.tells))
            parts["asks"].append((reading.asks, text.asks))
        plain = self.marker.unmarked([text.text for text in texts])
        tags = self.model.name([_without_words(pieces, [], self.mask, random) for pieces in plain])
        parts["names"] = [
            pair for text, pieces, logits in zip(texts, plain, tags, strict=True) for pair in zip(logits, named(text, pieces), strict=True)
        ]
        losses = {
            name: cross_entropy(torch.stack([logits for logits, _ in own]), torch.tensor([label for _, label in own]))
            for name, own in parts.items()
            if own
        }
        if stands:
            losses["stands"] = binary_cross_entropy_with_logits(
                torch.stack([logits for logits, _ in stands]), torch.tensor([first for _, first in stands])
            )
        return torch.stack([*losses.values()]).sum(), {name: float(loss.detach()) for name, loss in losses.items()}

    def examined(self) -> Mapping[str, Sequence[float]]:
        """What is read right of validation texts."""
        marks: dict[str, list[float]] = defaultdict(list)
        for name, texts in self._exam.items():
            made, turns = marked(texts, self.marker)
            for first in range(0, len(texts), 48):
                part = slice(first, first + 48)
                for text, reading in zip(texts[part], self.model(made[part], turns[part]), strict=True):
                    for what, values in right(text, reading).items():
                        marks[name + what] += values
                plain = self.marker.unmarked([text.text for text in texts[part]])
                for text, pieces, tags in zip(texts[part], plain, self.model.name(plain), strict=True):
                    marks[f"{name}names"].append(float(tags.argmax(-1).tolist() == named(text, pieces)))
        return marks


def right(text: Text, reading: PlacesRead) -> dict[str, list[float]]:
    """What was read right of a text: each 0 or 1."""
    turns = zip(reading.turns.argmax(-1).tolist() if len(reading.turns) else (), text.turns, strict=False)
    marks = {"turns": [float(got == turn) for got, (_, turn) in turns]} if text.tells != TELLS.index("neither") else {}
    if text.tells == TELLS.index("places"):
        marks["says"] = [float(int(reading.says[i, j].argmax()) == says) for i, j, says in says_of(text)]
        marks["links"] = [
            float((int(reading.says[i, j].argmax()) in (1, 2, 3, 5)) == (says in (1, 2, 3, 5))) for i, j, says in says_of(text)
        ]
    if text.tells == TELLS.index("walk"):
        marks["roles"] = [
            float(int(reading.roles[n].argmax()) == text.roles[place]) for n, place in enumerate(text.places) if place in text.roles
        ]
    if text.tells == TELLS.index("neither"):
        marks["asks"] = [float(int(reading.asks.argmax()) == text.asks)]
    marks["stands"] = [float((float(reading.stands[i, j]) > 0) == bool(first)) for i, j, first in stands_of(text)]
    return marks


if __name__ == "__main__":
    fit_encoder(RECIPE.model_copy(update={"bank": digest()}), PlaceTrainee, FIT, print)

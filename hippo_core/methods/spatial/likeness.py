"""What a sentence of two places tells that no pattern reads, by its likeness to sentences of which that is known.

    "The mill nestles to the north of the pier."  ->  a link, and the pier is where one stands

A sentence with its places blanked is a MiniLM vector and the words that it has; a linear function of both, fitted by ridge regression to
frames (data/reading/frames.yaml; benchmarks/memory/likeness.py), says whether it tells of a link, of a closed one, or of neither. Another
one says of each place, by the words around it, how like it is to one where a step begins: the place where one stands is the one that is
more so. A sentence that is like none of them stays as it was told.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from zlib import crc32

import numpy as np
from safetensors.numpy import load_file

from hippo_core.files import LabError, home
from hippo_core.methods.spatial.reading import DIRECTION

FILE = "data/weights/spatial/likeness.safetensors"
MADE_BY = "benchmarks/memory/likeness.py"
KINDS = ("link", "closed", "none")
ASKS = ("way", "other")
BUCKETS = 4096  # of the words' hashes
WORDS = 1.0  # what the words of a sentence weigh beside its vector
TOKEN = re.compile(r"\w+(?:['’]\w+)?|[,;:]")
BLANKS = ("the hall", "the yard")
STAND, OTHER = "this place", "that place"


@dataclass(frozen=True, slots=True)
class Blanked:
    """A sentence with its two places, as they are marked in it, and whether a direction is named."""

    text: str
    places: tuple[str, str]

    def plain(self, one: str, other: str) -> str:
        """The text with words in the place of the first and of the second place, and of the direction."""
        text = DIRECTION.sub("north", self.text)
        for noun, word in zip(self.places, (one, other), strict=True):
            text = re.sub(rf"\b[Tt]he {re.escape(noun)}(?!\w)", word, text)
        return text

    def grams(self, one: str, other: str) -> Iterator[str]:
        """The runs of one to three words, with the places as these words, and the direction as another."""
        words = ["<", *TOKEN.findall(DIRECTION.sub("direction", self.plain(one, other)).lower()), ">"]
        for size in (1, 2, 3):
            for at in range(len(words) - size + 1):
                yield " ".join(words[at : at + size])


def told_by(sentences: Sequence[Blanked], encode) -> np.ndarray:
    """What each sentence is made of [N, D + BUCKETS]: its vector, and the runs of its words."""
    vectors = encode([one.plain(*BLANKS) for one in sentences])
    return np.hstack([vectors, WORDS * np.stack([_hashed(one.grams("placename", "placename")) for one in sentences])])


def stood_by(sentences: Sequence[Blanked], encode) -> np.ndarray:
    """How the first place of each sentence differs from the second one [N, D + BUCKETS + 1]; with the places changed it is the negative."""
    both = encode([one.plain(*words) for one in sentences for words in ((STAND, OTHER), (OTHER, STAND))])
    here, there = both[::2], both[1::2]
    runs = [_hashed(one.grams("herename", "therename")) - _hashed(one.grams("therename", "herename")) for one in sentences]
    return np.hstack([here - there, WORDS * np.stack(runs), np.ones((len(sentences), 1))])


def _hashed(grams: Iterator[str]) -> np.ndarray:
    found = np.zeros(BUCKETS, dtype=np.float32)
    for gram in set(grams):
        found[crc32(gram.encode()) % BUCKETS] = 1
    return found / max(1.0, float(np.linalg.norm(found)))

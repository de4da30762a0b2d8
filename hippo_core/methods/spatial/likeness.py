"""What a sentence of two places tells that no pattern reads, by its likeness to sentences of which that is known.

    The mill nestles to the north of the pier.  ->  a link, and the pier is where one stands

A sentence with its places blanked is a MiniLM vector and the runs of its words. Linear functions of both, fitted by ridge regression to
frames (`python benchmarks/memory/likeness.py fit`), say whether it tells of a link, of a closed one or of neither, and whether a question
asks for a way. Another one says which of the two places is more like one where a step begins.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from zlib import crc32

import numpy as np

from hippo_core.files import LabError, root
from hippo_core.methods.spatial.encoded import Encode, minilm_kept, read_weights
from hippo_core.methods.spatial.reading import DIRECTION, directions
from hippo_core.methods.spatial.spans import Names, fitted_names

FILE = "data/weights/spatial/likeness.safetensors"
FIT = "python benchmarks/memory/likeness.py fit"
KINDS = ("link", "closed", "none")
BUCKETS = 4096  # of the hashes of runs of words
WORDS = 0.7  # what the words of a sentence weigh beside its vector
TOKEN = re.compile(r"\w+(?:['’]\w+)?|[,;:]")
BLANKS, STAND = ("the hall", "the yard"), ("this place", "that place")


@dataclass(frozen=True, slots=True)
class Blanked:
    """A sentence, and the nouns of its two places in the order in which they stand in it."""

    text: str
    places: tuple[str, str]

    def plain(self, one: str, other: str) -> str:
        """The text with these words in the place of its first and its second place, and one direction for all that it names first."""
        ahead = next(iter(directions(self.text)), "")
        text = DIRECTION.sub(lambda hit: "north" if hit[1].lower() == ahead else "south", self.text)
        for noun, word in zip(self.places, (one, other), strict=True):
            text = re.sub(rf"\bthe {re.escape(noun)}(?!\w)", word, text, flags=re.IGNORECASE)
        return text

    def runs(self, one: str, other: str) -> Iterator[str]:
        """The runs of one to three words, with the places as these words."""
        words = ["<", *TOKEN.findall(self.plain(one, other).lower()), ">"]
        for size in (1, 2, 3):
            yield from (" ".join(words[at : at + size]) for at in range(len(words) - size + 1))


def made_of(sentences: Sequence[Blanked], encode: Encode) -> np.ndarray:
    """What each sentence is made of [N, D + BUCKETS + 1]: its vector, the runs of its words, and 1."""
    runs = [_hashed(one.runs("placename", "placename")) for one in sentences]
    return np.hstack([encode([one.plain(*BLANKS) for one in sentences]), WORDS * np.stack(runs), np.ones((len(sentences), 1))])


def between(sentences: Sequence[Blanked], encode: Encode) -> np.ndarray:
    """How the first place of each sentence differs from the second one [N, D + BUCKETS + 1]; changed for each other, all but the 1 has the
    other sign."""
    both = encode([one.plain(*words) for one in sentences for words in (STAND, STAND[::-1])])
    runs = [_hashed(one.runs("herename", "therename")) - _hashed(one.runs("therename", "herename")) for one in sentences]
    return np.hstack([both[::2] - both[1::2], np.stack(runs), np.ones((len(sentences), 1))])


class Likeness:
    """What sentences and questions are like.

    Args:
        weights: `told` [F, 3], of KINDS; `asked` [F, 1], above 0: a way; `begins` [F, 1], above 0: one stands at the first place.
        encode: MiniLM where it is not given; vectors are kept.
        names: what finds the names of places; None: patterns do.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], encode: Encode | None = None, names: Names | None = None) -> None:
        self.names = names
        self.weights = {name: np.asarray(weight, dtype=np.float32) for name, weight in weights.items()}
        self.encode = encode or minilm_kept

    def told(self, sentences: Sequence[Blanked]) -> np.ndarray:
        """How like each statement is to one of each of KINDS, about -1 to 1 [N, 3]."""
        return made_of(sentences, self.encode) @ self.weights["told"]

    def asked(self, questions: Sequence[Blanked]) -> np.ndarray:
        """Above 0 where a way is asked for [N]."""
        return (made_of(questions, self.encode) @ self.weights["asked"])[:, 0]

    def begins(self, sentences: Sequence[Blanked]) -> np.ndarray:
        """Above 0 where one stands at the first place [N]."""
        return (between(sentences, self.encode) @ self.weights["begins"])[:, 0]


@cache
def fitted() -> Likeness:
    """The one whose weights are in the tree, loaded once a process.

    Raises:
        LabError: there are none, they are not what was fitted, or they are for other sentences than these.
    """
    path = root() / FILE
    weights = read_weights(path, FIT)
    rows = {weight.shape[0] for weight in weights.values()}
    if set(weights) != {"told", "asked", "begins"} or len(rows) != 1:
        raise LabError(f"{path} has {sorted(weights)}, expected told, asked and begins; `{FIT}` makes them")
    return Likeness(weights, names=fitted_names())


def _hashed(runs: Iterator[str]) -> np.ndarray:
    found = np.zeros(BUCKETS, dtype=np.float32)
    found[[crc32(run.encode()) % BUCKETS for run in set(runs)]] = 1
    return found / np.linalg.norm(found)

"""Names of places found as what recurs over the statements of a world, in words that no pattern knows.

    The captain's cabin opens into the gift shop. · Gift shop and hall of mirrors share a wall.
        ->  captain's cabin, gift shop, hall of mirrors

Each word of a statement is scored as the first of a name, one more of it, or none (encoder.py). The best names of each statement are found
by the algorithm of Viterbi (Forney 1973), and then those stand that the world as a whole bears out.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hippo_core.methods.spatial.reading import GENERIC, NOUN, mark
from hippo_core.spoken import MOVES

WORD = re.compile(r"[^\W_]+(?:-[^\W_]+|['’](?!s\b)[^\W_]+)*|['’]s?(?!\w)|[.,;:?!()]")
PUNCTUATION = frozenset(".,;:?!()")
ARTICLES = frozenset(("the",))
EDGES = frozenset(("the", "a", "an", "of", "and", "'", "’"))  # begin no name and end none
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
OVER = frozenset(("along", "across", "over", "through", "via"))
LONGEST = 6  # words of a name, an apostrophe and "the" within among them


@dataclass(frozen=True, slots=True)
class PlaceToken:
    """A word or a mark of a text, in small letters, and where it stands."""

    word: str
    start: int
    end: int
    capital: bool


def tokens(text: str) -> list[PlaceToken]:
    """The words and marks of a text."""
    return [PlaceToken(hit[0].lower().replace("’", "'"), hit.start(), hit.end(), hit[0][0].isupper()) for hit in WORD.finditer(text)]


class WordStatistics:
    """The texts of a world in words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.tokens = [tokens(text) for text in texts]


@dataclass(frozen=True, slots=True)
class PlaceNames:
    """The names of a world. `names`: the noun that each is marked as, and the name; `places`: the nouns of all places, those of one word
    that are told with "the" and need no mark among them."""

    names: dict[str, str]
    places: frozenset[str]


def best_spans(own: Sequence[PlaceToken], scores: np.ndarray) -> list[tuple[int, int]]:
    """The names of the highest sum of scores, none over a mark, begun or ended by a word that does neither."""
    least = -1e9
    total = np.array([0.0, least, least])  # of the best tags up to here that end in this one: no name, the first word, one more
    came: list[tuple[int, int, int]] = []  # of each word the best tag before each of its own
    for at, token in enumerate(own):
        outside = max(range(3), key=lambda tag: total[tag] + (least if tag and own[at - 1].word in EDGES else 0))
        inside = 1 if total[1] > total[2] else 2
        came.append((outside, outside, inside))
        total = total[[outside, outside, inside]] + scores[at]
        if token.word in PUNCTUATION:
            total[1:] = least
        if token.word in EDGES or token.word.startswith("'"):
            total[1] = least
    tags, tag = [0] * len(own), int(np.argmax(total))
    for at in reversed(range(len(own))):
        tags[at], tag = tag, came[at][tag]
    starts = [at for at, tag in enumerate(tags) if tag == 1]
    return [(start, next((at for at in range(start + 1, len(own)) if tags[at] != 2), len(own))) for start in starts]


def consensus_names(world: WordStatistics, spans: Sequence[Sequence[tuple[int, int]]]) -> PlaceNames:
    """The names that the whole world supports, of those tagged in single statements. What one statement alone adds to a name of others is
    not part of it; a piece of names that never occurs by itself is none; and a name is tagged in at least half of the statements that have
    its words."""
    votes, bare, called = Counter[tuple[str, ...]](), Counter[tuple[str, ...]](), dict[tuple[str, ...], tuple[bool, str]]()
    for text, own, name_spans in zip(world.texts, world.tokens, spans, strict=True):
        for start, end in name_spans:
            words = tuple(token.word for token in own[start:end])
            votes[words] += 1
            bare[words] += not start or own[start - 1].word not in ARTICLES
            name = (start > 0, text[own[start].start : own[end - 1].end])
            called[words] = max(called.get(words, name), name, key=lambda candidate: candidate[0])
    names = _without_additions(votes)
    outside = Counter[tuple[str, ...]]()
    for own in world.tokens:
        words, at = [token.word for token in own], 0
        while at < len(words):  # the longest first, as they are marked
            hit = next((candidate for size in range(LONGEST, 0, -1) if (candidate := tuple(words[at : at + size])) in names), ())
            outside[hit] += bool(hit)
            at += len(hit) or 1
    kept = [words for words in names if outside[words] and 2 * votes[words] >= outside[words]]
    nouns = {words: _noun(words) for words in kept}
    marked = [words for words in kept if bare[words] or nouns[words] not in words]
    marked.sort(key=lambda words: (-len(words), words))
    return PlaceNames({nouns[words]: called[words][1] for words in marked}, frozenset(nouns.values()))


def without_means(place_names: PlaceNames, world: WordStatistics) -> PlaceNames:
    """The names without those that only say how one goes: along the quay, across the moor."""
    often, over, by = Counter[str](), Counter[str](), Counter[str]()
    for text in world.texts:
        for hit in NOUN.finditer(mark(text, place_names.names)):
            noun = hit["noun"].lower()
            often[noun] += 1
            over[noun] += (hit["before"] or "").lower() in OVER
            by[noun] += (hit["before"] or "").lower() == "by"  # once it may say what lies beside it
    means = {noun for noun, count in often.items() if count == over[noun] + by[noun] and (over[noun] or count > 1)}
    return PlaceNames({noun: name for noun, name in place_names.names.items() if noun not in means}, place_names.places - means)


def _without_additions(votes: Mapping[tuple[str, ...], int]) -> set[tuple[str, ...]]:
    """The names, each without what it alone adds before or behind one that stands in more statements."""
    return {
        words
        for words, often in votes.items()
        if not any(votes.get(part, 0) > often for size in range(1, len(words)) for part in (words[:size], words[-size:]) if often == 1)
    }


def _noun(words: Sequence[str]) -> str:
    """A name as one noun of letters and lines under them."""
    letters = "".join(
        DIGITS[int(letter)] + " " if letter.isdigit() else letter for letter in " ".join(words).replace(" '", "").replace("'", "")
    )
    noun = "_".join(re.findall(r"[^\W\d_]+", letters))
    return f"place_{noun}" if noun in GENERIC or noun in MOVES else noun

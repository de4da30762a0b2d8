"""The names that a text mentions: capitalised words in a row, titles, numbers; and an index of names by their words and pieces.

    At the Marlow & Finch shop, Omar bought a lamp in 1999.   ->   Marlow & Finch, Omar, 1999

A word that a sentence begins with is a name unless it is a common word.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from hippo_core.retrieval.lexicon import grams

WORD = re.compile(r"[^\W_](?:[\w'’.-]*\w)?|&")
NEAR = 0.5  # the Dice coefficient of two names' character n-grams from which on they are taken for one
JOINS = frozenset({"&", "of", "de", "von", "van", "la", "del", "al"})
_COMMON = """
a an the this that these those it its he him his she her they them their we us our you your i me my who whom whose what which where when
why how is are was were be been being am do does did has have had can could will would shall should may might must not no yes and or but
nor so if then than as at by for from in into of off on onto out over to under up with without within about above across after against
along among around before behind below beneath beside between beyond during except inside near outside past since through throughout
toward towards until upon there here later now meanwhile today yesterday tomorrow afterwards perhaps maybe probably possibly according
some any every each all both many most more few several another other others such same only just also too very please tell say name do one
two three four five six seven eight nine ten someone somebody nobody people rumor recall remember however despite while because though
although whether either neither once twice often never always still yet nothing something anything everything someone's let give show find
"""
COMMON = frozenset(_COMMON.split())


class Mention(NamedTuple):
    """A name, and where it stands in its text."""

    name: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """By which the same name is found again."""
        return key_of(self.name)


@lru_cache(1 << 16)
def key_of(name: str) -> str:
    """A name without case, without a possessive, and without what only joins."""
    return " ".join(re.sub(r"['’]s?$", "", word) for word in name.casefold().split())


def mentions(text: str) -> list[Mention]:
    """The names of a text in order."""
    names: list[Mention] = []
    for words in _runs(text):
        while words and words[-1][0] in JOINS:
            words.pop()
        if words:
            start, end = words[0][1], words[-1][2]
            name = re.sub(r"['’]s?$", "", text[start:end])
            names.append(Mention(name, start, start + len(name)))
    return names


def _runs(text: str) -> Iterator[list[tuple[str, int, int]]]:
    """Words in a row that are one name."""
    run: list[tuple[str, int, int]] = []
    for match in WORD.finditer(text):
        word, gap = match.group(), text[run[-1][2] : match.start()] if run else " "
        if run and (gap != " " or run[-1][0].endswith(("'s", "’s"))):
            yield run
            run = []
        if _named(word, text, match.start()) or (run and word in JOINS):
            run.append((word, match.start(), match.end()))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _named(word: str, text: str, start: int) -> bool:
    if word[0].isdigit():
        return True
    if not word[0].isupper():
        return False
    plain = re.sub(r"['’]s?$", "", word).casefold()
    return not (plain in COMMON and begins(text, start)) and word != "I"


def begins(text: str, start: int) -> bool:
    """Whether a sentence begins where a word does."""
    before = text[:start].rstrip(" \"'“”‘’(")
    return not before or before[-1] in ".?!:;"


@dataclass
class NameIndex:
    """Names in the order in which they became known. One that is nearly known is found without looking at all."""

    known: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    by_word: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    by_gram: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    sizes: list[int] = field(default_factory=list)  # distinct n-grams of each

    def add(self, name: str) -> None:
        """One more; nothing where it is known."""
        if name in self.numbers:
            return
        number = self.numbers[name] = len(self.known)
        self.known.append(name)
        for word in dict.fromkeys(name.split()):
            self.by_word[word].append(name)
        pieces = set(grams(name))
        self.sizes.append(len(pieces))
        for piece in pieces:
            self.by_gram[piece].append(number)

    def nearest(self, name: str) -> str:
        """The name that this one is: itself; else the shortest one that is a part of it or that it is a part of, the first known of these;
        else the likest from `NEAR` on, the last in the alphabet of these; "" where there is none."""
        if name in self.numbers:
            return name
        own = set(name.split())
        near = dict.fromkeys(other for word in name.split() for other in self.by_word.get(word, ()))
        part = [other for other in near if own <= set(other.split()) or set(other.split()) <= own]
        if part:
            return min(part, key=lambda other: (len(other), self.numbers[other]))
        pieces = set(grams(name))
        shared = Counter(number for piece in pieces for number in self.by_gram.get(piece, ()))
        likeness = {number: 2 * count / (len(pieces) + self.sizes[number]) for number, count in shared.items()}
        best = max(likeness.values(), default=0.0)
        return max((self.known[number] for number, value in likeness.items() if value == best), default="") if best >= NEAR else ""

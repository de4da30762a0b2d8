"""An index of names by their words and by pieces of them, so that a name that is nearly known is found without looking at all."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from hippo_core.retrieval.lexicon import grams

NEAR = 0.5  # the Dice coefficient of two names' character n-grams from which on they are taken for one


@dataclass
class NameIndex:
    """Names in the order in which they became known."""

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
        return max((self.known[number] for number, one in likeness.items() if one == best), default="") if best >= NEAR else ""

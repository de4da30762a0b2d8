"""Which words of a world's texts are names, so that one thing is known again wherever it is named.

    "Dr. Aoife O'Neill runs the mill."  "O'Neill's mill stands on Harbour Street."  "Who owns the mill?"

A name is: capitalised words in a row, with what joins them (of, de, van, &); words of a script without capitals; a common noun behind "the"
that several texts have, unless it begins a description (the owner of ...). A word that only ever begins sentences is none, unless others
have it inside. A shorter name is that of the one longer name whose words it has: O'Neill, Dr. O'Neill.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from hippo_core.methods.relational.mentions import COMMON, begins

WORD = re.compile(r"[^\W_](?:[\w'’.-]*[^\W_])?|&")
_JOINS = """& of de da do du van von der den la le del della di al el bin ibn y zu zur"""
JOINS = frozenset(_JOINS.split())
_TITLES = """dr prof mr mrs ms miss sir dame lady lord rev fr sister brother captain capt sgt judge king queen saint st"""
TITLES = frozenset(_TITLES.split())
_BEFORE_DESCRIPTION = """of who whom whose that which where when for to from in"""
BEFORE_DESCRIPTION = frozenset(_BEFORE_DESCRIPTION.split())
NOUN = re.compile(r"\b[Tt]he ((?:[a-z][\w'’-]*)(?: [a-z][\w'’-]*){0,3})")
POSSESSIVE = re.compile(r"['’]s?$")


class Span(NamedTuple):
    """Where a text names something, by the key of what it names."""

    start: int
    end: int
    key: str


@lru_cache(1 << 16)
def key_of(name: str) -> str:
    """A name without case, article, possessive and marks between its words, in one form of Unicode."""
    words = [token.word for token in tokens(name)]
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words)


class Token(NamedTuple):
    """A word of a text: as it stands without a possessive, folded, and whether the text has a capital or a script without any."""

    start: int
    end: int
    word: str
    capital: bool


def tokens(text: str) -> list[Token]:
    """The words of a text in order."""
    made = []
    for match in WORD.finditer(text):
        word = POSSESSIVE.sub("", match[0])
        made.append(Token(match.start(), match.start() + len(word), unicodedata.normalize("NFC", word).casefold(), _is_named(word)))
    return made


def _is_named(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit() or (word[0].isalpha() and word[0].lower() == word[0].upper())


@dataclass
class NameFinder:
    """The names of a world. `names`: word by word, by their first word, the longest first; `nouns`: those of them that stand behind "the"
    in lower case."""

    names: dict[str, list[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(list))
    nouns: set[tuple[str, ...]] = field(default_factory=set)
    full_names: Mapping[str, str] = field(default_factory=dict)  # of a shorter name, the longer one of the same thing
    by_word: dict[str, list[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(list))  # those with a capital

    @classmethod
    def of(cls, texts: Iterable[str]) -> "NameFinder":
        """The names of these texts."""
        finder, texts = cls(), list(texts)
        clear: Counter[tuple[str, ...]] = Counter()
        first: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            for run, opens in runs(text):
                (first if opens and len(run) == 1 else clear)[tuple(token.word for token in run)] += 1
        known = {word for name in clear for word in name}
        finder.nouns = _nouns(texts)
        for name in {*clear, *(name for name in first if name[0] in known), *finder.nouns}:
            finder.names[name[0]].append(name)
        for some in finder.names.values():
            some.sort(key=len, reverse=True)
        proper = [name for some in finder.names.values() for name in some if name not in finder.nouns]
        for name in proper:
            for word in {*name} - JOINS:
                finder.by_word[word].append(name)
        finder.full_names = _full_names(proper)
        return finder

    def find(self, text: str) -> list[Span]:
        """The names in a text, in order."""
        found, own, place = [], tokens(text), 0
        while place < len(own):
            for name in self.names.get(own[place].word, ()):
                part = own[place : place + len(name)]
                if tuple(token.word for token in part) == name and self._fits(text, own, place, part, name):
                    key = " ".join(name)
                    found.append(Span(part[0].start, part[-1].end, self.full_names.get(key, key)))
                    place += len(name)
                    break
            else:
                if whole := self._full_name_of(own[place]):
                    found.append(Span(own[place].start, own[place].end, whole))
                place += 1
        return found

    def _full_name_of(self, token: Token) -> str:
        """The one name that a capitalised word is a part of; "" where there is none, or several."""
        if not token.capital or token.word in COMMON or token.word in TITLES:
            return ""
        wholes = {self.full_names.get(key, key) for key in (" ".join(name) for name in self.by_word.get(token.word, ()))}
        return wholes.pop() if len(wholes) == 1 else ""

    def _fits(self, text: str, own: Sequence[Token], place: int, part: Sequence[Token], name: tuple[str, ...]) -> bool:
        """Whether these words stand for the name here: together, and with a capital or behind "the"."""
        if not all(_adjacent(text, one, other) for one, other in pairwise(part)):
            return False
        return part[0].capital or (name in self.nouns and place > 0 and own[place - 1].word == "the")


@dataclass
class TaggedNames:
    """The names of a world where a tagger said which words of each text are names (encoder.py): these, and wherever else they stand.

    `keys`: of each name as it is written, folded, the key of what it names; `nouns`: those without a capital, which stand for the name
    behind "the", or where the tagger says so."""

    keys: dict[str, str] = field(default_factory=dict)
    nouns: set[str] = field(default_factory=set)
    form: re.Pattern[str] | None = None

    @classmethod
    def of(cls, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> "TaggedNames":
        """The names of these texts, of which the tagger found these. What it takes for a name in few of its places is none."""
        tagged = Counter(text[start:end].casefold() for text, own in zip(texts, spans, strict=True) for start, end in own)
        capital = {
            text[start:end].casefold() for text, own in zip(texts, spans, strict=True) for start, end in own if text[start].isupper()
        }
        if not tagged:
            return cls()
        form = _form(tagged)
        met = Counter(match[0].casefold() for text in texts for match in form.finditer(text))
        kept = [name for name, count in tagged.items() if 2 * count >= met[name]]
        by_words: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in kept:
            by_words[tuple(token.word for token in tokens(name))].append(name)
        full = _full_names([words for words in by_words if by_words[words][0] in capital])
        keys = {}
        for words, names in by_words.items():
            key = " ".join(words)
            keys |= dict.fromkeys(names, full.get(key, key))
        return cls(keys, {name for name in kept if name not in capital}, _form(kept) if kept else None)

    def find(self, text: str, tagged: Sequence[tuple[int, int]] = ()) -> list[Span]:
        """The names in a text, in order; `tagged`: where the tagger sees some."""
        found = []
        for match in self.form.finditer(text) if self.form else ():
            name = match[0].casefold()
            if name in self.nouns and match.span() not in tagged and not text[: match.start()].casefold().endswith("the "):
                continue
            found.append(Span(match.start(), match.end(), self.keys[name]))
        return found


def _form(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(name) for name in sorted(names, key=len, reverse=True))})(?!\w)", re.IGNORECASE)


def tagged_spans(text: str, places: Sequence[int], labels: Sequence[int]) -> list[tuple[int, int]]:
    """Where a tagger sees names. `places`: where each piece begins; `labels`: 0 no name, 1 one begins, 2 one goes on. Words of scripts
    without capitals are names, as a tagger that reads English does not know them."""
    of = {place: label for place, label in zip(places, labels, strict=True) if place >= 0}
    spans: list[tuple[int, int]] = []
    last: Token | None = None
    for token in tokens(text):
        label = of.get(token.start, 0)
        if token.word[0].isalpha() and token.word[0] == token.word[0].upper():
            label = 2 if last else 1
        if label == 0 or (last is None and token.word == "the"):
            last = None
            continue
        if label == 2 and last and re.fullmatch(r"['’]?s?[ -]|\. |['’] | & ", text[last.end : token.start]):
            spans[-1] = (spans[-1][0], token.end)
        else:
            spans.append((token.start, token.end))
        last = token
    return spans


def runs(text: str) -> list[tuple[list[Token], bool]]:
    """Capitalised words in a row, with what joins them, and whether a sentence opens with them."""
    made: list[tuple[list[Token], bool]] = []
    run: list[Token] = []
    own = tokens(text)
    for place, token in enumerate(own):
        if run and not _adjacent(text, run[-1], token):
            made.append((run, begins(text, run[0].start)))
            run = []
        opens = token.capital and begins(text, token.start)
        joins = run and token.word in JOINS and place + 1 < len(own) and own[place + 1].capital
        if joins or (token.capital and not (token.word in COMMON and (opens or not run))):
            run = [*run, token]
        elif run:
            made.append((run, begins(text, run[0].start)))
            run = []
    return [*made, *([(run, begins(text, run[0].start))] if run else [])]


def _adjacent(text: str, one: Token, other: Token) -> bool:
    """Whether nothing stands between two words that would end a name: the full stop of a title does not, nor a plural's apostrophe."""
    between = text[one.end : other.start]
    return between in (" ", "-") or (between == ". " and (one.word in TITLES or one.end - one.start == 1)) or between in ("' ", "’ ")


def _nouns(texts: Sequence[str]) -> set[tuple[str, ...]]:
    """Common nouns behind "the" in several of these texts that begin no description there."""
    held: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for number, text in enumerate(texts):
        for match in NOUN.finditer(text):
            words = tuple(POSSESSIVE.sub("", word) for word in match[1].split())
            for size in range(1, len(words) + 1):
                if not (set(words[:size]) & COMMON) and not (size < len(words) and words[size] in BEFORE_DESCRIPTION):
                    held[words[:size]].add(number)
    several = {words: numbers for words, numbers in held.items() if len(numbers) > 1}
    return {
        words
        for words, numbers in several.items()
        if not any(longer[: len(words)] == words and several[longer] == numbers for longer in several if len(longer) > len(words))
    }


def _full_names(names: Sequence[tuple[str, ...]]) -> Mapping[str, str]:
    """Of each shorter name the one longer name that has all of its words but titles."""
    by_word: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for name in names:
        for word in set(name):
            by_word[word].append(name)
    wholes = {}
    for name in names:
        own = [word for word in name if word.rstrip(".") not in TITLES] or list(name)
        longer = [other for other in by_word[own[0]] if len(other) > len(own) and other != name and set(own) <= set(other)]
        longer = [other for other in longer if not any(set(other) < set(one) for one in longer)]
        if len(longer) == 1:
            wholes[" ".join(name)] = " ".join(longer[0])
    return wholes

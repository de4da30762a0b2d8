"""Which words of a world's texts are names, so that one thing is known again wherever it is named.

    "Dr. Aoife O'Neill runs the mill."  "O'Neill's mill stands on Harbour Street."  "Who owns the mill?"

A tagger says which words of a text are names (encoder.py). Two names that it takes for one are two where it takes them for two elsewhere. A
shorter name is that of the one longer name whose words it has.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from hippo_core.methods.relational.mentions import COMMON

WORD = re.compile(r"[^\W_](?:[\w'’.-]*[^\W_])?|&")
_TITLES = "dr prof mr mrs ms miss sir dame lady lord rev fr sister brother captain capt sgt judge king queen saint st"
TITLES = frozenset(_TITLES.split())
POSSESSIVE = re.compile(r"['’]s?$")


class NameSpan(NamedTuple):
    """Where a text names something, by the key of what it names."""

    start: int
    end: int
    key: str


@lru_cache(1 << 16)
def key_of(name: str) -> str:
    """A name without case, article, possessive and marks between its words, in one form of Unicode."""
    words = [token.word for token in tokens(name)]
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words)


class NameToken(NamedTuple):
    """A word of a text: as it stands without a possessive, folded."""

    start: int
    end: int
    word: str


def tokens(text: str) -> list[NameToken]:
    """The words of a text in order."""
    made = []
    for match in WORD.finditer(text):
        word = POSSESSIVE.sub("", match[0])
        made.append(NameToken(match.start(), match.start() + len(word), unicodedata.normalize("NFC", word).casefold()))
    return made


@dataclass
class TaggedNames:
    """The names of a world where a tagger said which words of each text are names (encoder.py): these, and wherever else they stand.

    `keys`: of each name as it is written, folded, the key of what it names; `nouns`: those without a capital that were seen behind "the"
    alone, and stand for the name there, or where the tagger says so."""

    keys: dict[str, str] = field(default_factory=dict)
    nouns: set[str] = field(default_factory=set)
    form: re.Pattern[str] | None = None

    @classmethod
    def of(cls, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> "TaggedNames":
        """The names of these texts, of which the tagger found these. What it takes for a name in few of its places is none, nor are two
        names that it takes for one."""
        tagged_at = [(text, start, end) for text, own in zip(texts, spans, strict=True) for start, end in own]
        tagged = Counter(text[start:end].casefold() for text, start, end in tagged_at)
        written = {text[start:end].casefold(): text[start:end] for text, start, end in tagged_at}
        capital = {text[start:end].casefold() for text, start, end in tagged_at if text[start].isupper()}
        bare = {text[start:end].casefold() for text, start, end in tagged_at if not _is_behind_the(text, start)}
        if not tagged:
            return cls()
        form = _form(tagged)
        occurrences = Counter(match[0].casefold() for text in texts for match in form.finditer(text))
        kept = [
            name
            for name, count in tagged.items()
            if 2 * count >= occurrences[name]
            and not COMMON.issuperset(token.word for token in tokens(name))
            and not _is_made_of_others(written[name], tagged)
        ]
        by_words: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in kept:
            by_words[tuple(token.word for token in tokens(name))].append(name)
        full = _full_names([words for words in by_words if by_words[words][0] in capital])
        keys = {}
        for words, names in by_words.items():
            key = " ".join(words)
            keys |= dict.fromkeys(names, full.get(key, key))
        return cls(keys, {name for name in kept if name not in capital | bare}, _form(kept) if kept else None)

    def find(self, text: str, tagged: Sequence[tuple[int, int]] = ()) -> list[NameSpan]:
        """The names in a text, in order; `tagged`: where the tagger sees some."""
        names = []
        for match in self.form.finditer(text) if self.form else ():
            name = match[0].casefold()
            if name in self.nouns and match.span() not in tagged and not _is_behind_the(text, match.start()):
                continue
            names.append(NameSpan(match.start(), match.end(), self.keys[name]))
        return names


def _is_behind_the(text: str, start: int) -> bool:
    return text[:start].casefold().endswith("the ")


def _is_made_of_others(name: str, tagged: Mapping[str, int]) -> bool:
    """Whether a tagged name is another one of several words, tagged as often, beside a further name, a title or words without a capital."""
    words = tokens(name)
    for number in range(1, len(words)):
        first, last = name[: words[number - 1].end], name[words[number].start :]
        for part, other in ((first, last), (last, first)):
            known = " " in part and part[0].isupper() and tagged.get(part.casefold(), 0) >= tagged[name.casefold()]
            if known and (other.casefold() in tagged or other.islower() or other.casefold() in TITLES):
                return True
    return False


def _form(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(name) for name in sorted(names, key=len, reverse=True))})(?!\w)", re.IGNORECASE)


def tagged_spans(text: str, starts: Sequence[int], labels: Sequence[int]) -> list[tuple[int, int]]:
    """Where a tagger sees names. `starts`: where each piece begins; `labels`: 0 no name, 1 one begins, 2 one goes on. Words of scripts
    without capitals are names, as a tagger that reads English does not know them."""
    of = {start: label for start, label in zip(starts, labels, strict=True) if start >= 0}
    spans: list[tuple[int, int]] = []
    last: NameToken | None = None
    for token in tokens(text):
        label = of.get(token.start, 0)
        if token.word[0].isalpha() and token.word[0] == token.word[0].upper():
            label = 2 if last else 1
        if label == 0 or (last is None and token.word == "the"):
            last = None
            continue
        if label == 2 and last and re.fullmatch(r"['’]?s?[ -]|[.,:] |['’] | & ", text[last.end : token.start]):
            spans[-1] = (spans[-1][0], token.end)
        else:
            spans.append((token.start, token.end))
        last = token
    return spans


def _full_names(names: Sequence[tuple[str, ...]]) -> Mapping[str, str]:
    """Of each shorter name the one longer name that has all of its words but titles."""
    by_word: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for name in names:
        for word in set(name):
            by_word[word].append(name)
    full = {}
    for name in names:
        own = [word for word in name if word.rstrip(".") not in TITLES] or list(name)
        longer = [other for other in by_word[own[0]] if len(other) > len(own) and other != name and set(own) <= set(other)]
        longer = [other for other in longer if not any(set(other) < set(another) for another in longer)]
        if len(longer) == 1:
            full[" ".join(name)] = " ".join(longer[0])
    return full

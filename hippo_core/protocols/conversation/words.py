"""Words of a text: what "occurs in it" means (not "US" in "bus", nor 5 in 1.5); names and content words."""

import re
from functools import lru_cache

from hippo_core.live.answer import FUNCTION_WORDS
from hippo_core.retrieval.lexicon import words
from hippo_core.text import WORD, folded

OPENERS = frozenset({"please", "actually", "correction", "since", "way", "remember", "things", "changed", "wrong", "thank", "let", "go"})
_NAMES = re.compile(r"\b[A-Z][\w'-]*|\b\d[\w.,:-]*\b")


@lru_cache(maxsize=4096)
def _pattern(phrase: str) -> re.Pattern[str]:
    said = r"\s+".join(map(re.escape, folded(phrase).split()))
    return re.compile(f"(?=({said}))")


@lru_cache(maxsize=256)
def _inside(text: str) -> tuple[str, frozenset[int]]:
    """A text for comparison, and the places in it that are inside a word; beside an apostrophe is not ("Lea" occurs in "Lea's")."""
    said = folded(text)
    places = (place for word in WORD.finditer(said) for place in range(word.start() + 1, word.end()))
    return said, frozenset(place for place in places if "'" not in said[place - 1 : place + 1])


def holds(text: str, phrase: str) -> bool:
    """Whether a phrase occurs in a text as whole words, in any case; an empty phrase occurs in none."""
    if not phrase.strip():
        return False
    said, inside = _inside(text)
    return any(not {hit.start(1), hit.end(1)} & inside for hit in _pattern(phrase).finditer(said))


def content(text: str) -> list[str]:
    """The content words of a text, in order, each as often as it is said."""
    return [word for word in words(text) if word not in FUNCTION_WORDS and word not in OPENERS]


def names(text: str) -> frozenset[str]:
    """Capitalised words and numbers, in lower case, less those that only open a sentence."""
    return frozenset(name.lower() for name in _NAMES.findall(text)) - FUNCTION_WORDS - OPENERS

"""Words of a text: what "occurs in it" means. "US" does not occur in "bus", nor 5 in 1.5."""

import re
from functools import lru_cache

from hippo_core.text import WORD, folded


@lru_cache(maxsize=4096)
def _pattern(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, folded(phrase).split()))
    return re.compile(f"(?=({words}))")


@lru_cache(maxsize=256)
def _inside(text: str) -> tuple[str, frozenset[int]]:
    """A text for comparison, and the offsets in it that are inside a word, not beside an apostrophe ("Lea" occurs in "Lea's")."""
    folded_text = folded(text)
    offsets = (offset for word in WORD.finditer(folded_text) for offset in range(word.start() + 1, word.end()))
    return folded_text, frozenset(offset for offset in offsets if "'" not in folded_text[offset - 1 : offset + 1])


def contains_words(text: str, phrase: str) -> bool:
    """Whether a phrase occurs in a text as whole words, in any case; an empty phrase occurs in none."""
    if not phrase.strip():
        return False
    folded_text, inside = _inside(text)
    return any(not {hit.start(1), hit.end(1)} & inside for hit in _pattern(phrase).finditer(folded_text))

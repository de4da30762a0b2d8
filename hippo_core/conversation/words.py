"""Words of a text: what "occurs in it" means. "US" does not occur in "bus"."""

import re
from functools import lru_cache


@lru_cache(maxsize=4096)
def _pattern(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)


def holds(text: str, phrase: str) -> bool:
    """Whether a phrase occurs in a text as whole words, in any case; an empty phrase occurs in none."""
    return bool(phrase.strip()) and _pattern(phrase).search(text) is not None

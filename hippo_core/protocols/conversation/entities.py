"""The names and content words of a turn: what other turns may mention again."""

import re

from hippo_core.live.answer import FUNCTION_WORDS
from hippo_core.retrieval.lexicon import words

OPENERS = frozenset({"please", "actually", "correction", "since", "way", "remember", "things", "changed", "wrong", "thank", "let", "go"})
_NAMES = re.compile(r"\b[A-Z][\w'-]*|\b\d[\w.,:-]*\b")


def content(text: str) -> list[str]:
    """The content words of a text, in order, each as often as it occurs."""
    return [word for word in words(text) if word not in FUNCTION_WORDS and word not in OPENERS]


def names(text: str) -> frozenset[str]:
    """Capitalised words and numbers, in lower case, less those that only open a sentence."""
    return frozenset(name.lower() for name in _NAMES.findall(text)) - FUNCTION_WORDS - OPENERS

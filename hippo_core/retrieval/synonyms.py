"""Replace words by their meanings, as the suites know them: every word of a group of synonyms becomes the name of the group.

This is a bound and no rival: it knows the table that the suites draw their paraphrases from, with the held-out words.
"""

from collections.abc import Iterator
from functools import cache

from hippo_core.retrieval.lexicon import words
from hippo_core.suites.lexicon import ACTIONS, MOTIONS, OBJECTS, PLACES


def meanings(text: str) -> list[str]:
    """The words of a text, longest runs first, with synonyms replaced by the names of their groups; a word of two groups becomes both."""
    tokens, names, start = words(text), [], 0
    while start < len(tokens):
        length = next((size for size in range(_longest(), 0, -1) if tuple(tokens[start : start + size]) in _groups()), 0)
        names += _groups()[tuple(tokens[start : start + length])] if length else [tokens[start]]
        start += max(1, length)
    return names


@cache
def _groups() -> dict[tuple[str, ...], list[str]]:
    """The names of the groups that each run of words belongs to. No name is a word of a text."""
    table: dict[tuple[str, ...], list[str]] = {}
    for name, members in _named():
        for member in members:
            if name not in (names := table.setdefault(tuple(words(member)), [])):
                names.append(name)
    return table


@cache
def _longest() -> int:
    return max(map(len, _groups()))


def _named() -> Iterator[tuple[str, list[str]]]:
    for verbs in (*ACTIONS, *MOTIONS):
        yield f"={verbs[0].base}", [form for verb in verbs for form in (verb.past, verb.base)]
    for group in (*OBJECTS, *PLACES):
        yield f"={group[0]}", list(group)

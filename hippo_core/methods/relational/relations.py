"""Relations that many sentences tell in different words, as patterns over a sentence whose names are blanked.

    the Marlow shop stands in Oslo   ->   is in (Marlow, Oslo)

A sentence of none of these forms keeps its own words as its relation.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hippo_core.methods.relational.mentions import COMMON, Mention

# H is the head, T the tail, both with an article before and a noun behind them where there are such ("the Marlow shop").
FORMS: Mapping[str, tuple[str, ...]] = {
    "is in": (
        "H (?:is|stands|lies|sits|is found|is located|is situated|is based|is at home|can be found|moved|has moved|relocated|has relocated)"
        " (?:in|to|at) T",
        "you (?:can )?find H in T",
        "it is in T that H (?:has its doors|is|stands|lies)",
        "H has its (?:doors|seat|home|headquarters) in T",
        "H in T",
    ),
    "friend": (
        "H is (?:a|the) friend of T",
        "H has T as (?:a|the) friend",
        "H and T are friends",
        "(?:a|the) friend of H is T",
        "H is friends with T",
    ),
    "works for": (
        "H works (?:for|at|with) T",
        "T employs H",
        "H has a job (?:with|at) T",
        "H is on the payroll of T",
        "H is employed (?:by|at) T",
    ),
    "studies at": (
        "H studies (?:at|in) T",
        "T has H as a student",
        "H is a student (?:of|at) T",
        "H takes courses at T",
        "H is enrolled at T",
    ),
    "bought": (
        "H (?:bought|purchased|got) (?P<what>[a-z ]+) (?:at|from|in) T",
        "(?:at|in) T,? H (?:bought|purchased|got) (?P<what>[a-z ]+)",
        "it was at T that H (?:bought|purchased|got) (?P<what>[a-z ]+)",
        "(?P<what>[a-z ]+) from T,? that is what H (?:bought|purchased|got)",
        "H bought (?P<what>[a-z ]+)",
    ),
}
TYPES: Mapping[str, tuple[str, str]] = {  # what heads and tails of a relation are; "" where several things may be
    "is in": ("", "city"),
    "friend": ("person", "person"),
    "works for": ("person", "company"),
    "studies at": ("person", "college"),
    "bought": ("person", "shop"),
}
WORDS = {  # words of a relation, in any of its forms
    name: frozenset(word for form in forms for word in re.findall(r"[a-z]{3,}", re.sub(r"\?P<\w+>\S+", "", form))) - COMMON
    for name, forms in FORMS.items()
}


class Relation(NamedTuple):
    """What a sentence says of two of its names: indices of head and tail among its mentions, and what they are said to be."""

    name: str
    head: int
    tail: int
    head_type: str = ""
    tail_type: str = ""

    @property
    def words(self) -> frozenset[str]:
        """Those of all its known forms; none where its form is not known."""
        return next((words for name, words in WORDS.items() if f"{self.name} ".startswith(f"{name} ")), frozenset())


def blanked(core: str, names: Sequence[Mention]) -> tuple[str, list[str]]:
    """A sentence in lower case with a mark for each name, and the noun that stands behind each name after an article ("" where none)."""
    text, at, nouns = "", 0, []
    for number, mention in enumerate(names):
        before, after = core[at : mention.start], core[mention.end :]
        noun = re.match(r" (?P<noun>[a-z]+)", after) if re.search(r"\b[Tt]he $", before) else None
        nouns.append(noun["noun"] if noun else "")
        text += re.sub(r"\b(?:[Tt]he) $", "", before) + f"<{number}>"
        at = mention.end + (noun.end() if noun else 0)
    return " ".join((text + core[at:]).casefold().split()), nouns


def relation_of(core: str, names: Sequence[Mention]) -> Relation | None:
    """The relation of a sentence's names; None where it mentions fewer than two."""
    if len(names) < 2:
        return None
    text, nouns = blanked(core, names)
    for name, patterns in _FORMS.items():
        for pattern in patterns:
            if match := pattern.fullmatch(text):
                head, tail = int(match["head"]), int(match["tail"])
                what = match.groupdict().get("what")
                types = TYPES[name]
                return Relation(f"{name} {what}" if what else name, head, tail, types[0] or nouns[head], types[1] or nouns[tail])
    last = len(names) - 1
    return Relation(text.replace("<0>", "H").replace(f"<{last}>", "T"), 0, last, nouns[0], nouns[last])


def _compiled(form: str) -> re.Pattern[str]:
    form = re.sub(r"\bH\b", "<(?P<head>[0-9]+)>", form, count=1)
    form = re.sub(r"\bT\b", "<(?P<tail>[0-9]+)>", form, count=1)
    return re.compile(form + r"(?: (?:in|on|at) (?:\w+|<[0-9]+>))?")


_FORMS = {name: [_compiled(form) for form in forms if re.search(r"\bT\b", form)] for name, forms in FORMS.items()}

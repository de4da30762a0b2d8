"""Who says a sentence, in words that no pattern of speech knows.

Ann maintains that the Ost winds past Saxby.            ->  Ann: the Ost winds past Saxby
The Ost winds past Saxby, or so Ann told the others.    ->  Ann: The Ost winds past Saxby
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from hippo_core.methods.relational.attribution import Attribution
from hippo_core.methods.relational.mentions import COMMON, Mention
from hippo_core.retrieval.lexicon import words

PLACES = {
    "at",
    "in",
    "on",
    "by",
    "from",
    "to",
    "near",
    "with",
    "of",
    "for",
    "under",
    "over",
    "behind",
    "beside",
    "after",
    "before",
    "during",
}
MANY = re.compile(r"[A-Z][a-z]+[^s\W]s of ")


def infer_speaker(said: Attribution, found: Sequence[Mention]) -> Attribution:
    """What is said, with the name that stands apart as the one who says it.

    Of three names or more the first one or the last one stands apart where a comma or "that" parts it from the others, and words beside it
    that are no mere place.
    """
    if said.teller or len(found) < 3:
        return said
    core, first, last = said.core, found[0], found[-1]
    if part := re.search(r",\s|\bthat\s", core[first.end : found[1].start]):
        cut = first.end + part.end()
        if _speaks(core[: first.start], core[first.end : cut]):
            return replace(said, teller=first.name, core=core[cut:])
    if part := re.search(r",\s", core[found[-2].end : last.start]):
        cut = found[-2].end + part.start()
        if _speaks(core[cut + 1 : last.start], core[last.end :]):
            return replace(said, teller=last.name, core=core[:cut])
    return said


def lowered(text: str) -> str:
    """A text that does not begin with several of something as if these were a name: "Lorries of Brock set out" -> "lorries of Brock"."""
    return text[0].lower() + text[1:] if MANY.match(text) else text


def _speaks(before: str, behind: str) -> bool:
    """Whether the words around a name may be those of somebody who says something."""
    around = [*words(before), *words(behind)]
    return any(word not in COMMON for word in around) and around[0] not in PLACES

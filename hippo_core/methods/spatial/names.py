"""Names of places that are more than one noun behind "the": "the old mill", "Saint Ann's".

They are found in all statements, and marked in a text as one noun, "the old_mill", before it is read.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from hippo_core.methods.spatial.reading import ROUTE, STEP
from hippo_core.spoken import MOVES

PAIR = re.compile(r"\b[Tt]he ([a-z]+)(?: ([a-z]+)\b)?(?=( [a-z]+)?)")
PROPER = re.compile(r"[A-Z][a-z]+(?:['’]s)?(?: [A-Z][a-z]+(?:['’]s)?)*")
BEFORE = re.compile(r"\b(?:from|at|to|of|between|beside|behind|into|opposite|leaves?|against|with) $", re.IGNORECASE)
TITLES = frozenset(("Mr", "Mrs", "Miss", "Ms", "Dr", "Doctor", "Sir", "Lady", "Aunt", "Uncle", "Widow", "Old"))
# Words that follow a name, or begin a sentence, and are no part of one.
CLOSED = frozenset((
    "a", "across", "after", "against", "and", "are", "as", "at", "before", "behind", "beside", "between", "but", "by", "can",
    "comes", "east", "for", "from", "going", "has", "have", "head", "heading", "in", "into", "is", "it", "leave", "next", "no",
    "north", "nothing", "of", "off", "on", "one", "only", "opposite", "or", "out", "over", "right", "since", "south", "than",
    "that", "the", "there", "to", "was", "way", "west", "what", "where", "which", "who", "whoever", "will", "with", "without",
    "you",
))  # fmt: skip


def is_plain(text: str) -> bool:
    """Whether a statement is neither a step of an explorer nor a named route."""
    return not STEP.match(text) and not ROUTE.match(text)


def place_names(texts: Sequence[str]) -> dict[str, str]:
    """The names of several words, and proper names, in the statements of one world: the noun that each is marked as, and the name."""
    plain = [text for text in texts if is_plain(text)]
    names = _pairs(plain) | _proper(plain)
    return {re.sub(r"['’]", "", name.lower()).replace(" ", "_"): name for name in sorted(names, key=lambda name: (-len(name), name))}


def mark(text: str, names: dict[str, str]) -> str:
    """The text with each name as one noun behind "the". A name in small letters may begin with a capital here; one word of them behind "a"
    is none."""
    for noun, name in names.items():
        spelled = re.escape(name).replace("’", "'").replace("'", "['’]")
        spelled = f"(?i:{spelled})" if name[0].islower() else spelled
        some = "" if " " in name else r"(?<!\b[Aa] )(?<!\b[Aa]n )"
        text = re.sub(rf"(?<![\w-]){some}(?:([Tt])he )?{spelled}(?!\w)", lambda hit, noun=noun: f"{hit[1] or 't'}he {noun}", text)
    return text


def _pairs(texts: Sequence[str]) -> set[str]:
    """Two words behind "the" of which the first never stands there alone."""
    after: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for first, second, third in PAIR.findall(text):
            verb = second.endswith(("s", "ed")) and third.strip() in {*CLOSED, "hard"}
            if first in MOVES:
                continue
            after[first][second if second and second not in CLOSED and not verb else ""] += 1
    return {f"{first} {second}" for first, seconds in after.items() for second in seconds if "" not in seconds and len(seconds) == 1}


def _proper(texts: Sequence[str]) -> set[str]:
    """Words with capitals that stand somewhere behind what leads to a place."""
    names: set[str] = set()
    for text in texts:
        for hit in PROPER.finditer(text):
            if hit.start() and (BEFORE.search(text[: hit.start()]) or (" " in hit[0] and hit[0].split()[0] not in TITLES)):
                names.add(hit[0])
            elif not hit.start() and (words := hit[0].split())[0].lower() in CLOSED and len(words) > 1 and BEFORE.search(words[0] + " "):
                names.add(" ".join(words[1:]))
    return names

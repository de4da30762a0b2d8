"""Does a text say something? Whole words, in order, and not where they are denied."""

import re
from collections.abc import Iterator, Sequence

from hippo_core.protocols.paired.items import Assertion
from hippo_core.text import CURRENCY, WORD, folded

BEFORE = 5  # words before an assertion in which a denial counts
AFTER = 4  # and behind it
DENIED_BEFORE = re.compile(
    r"\b(?:not|no|never|nor|neither|without|cannot|avoid|formerly|\w+n't)\b|\b(?:instead of|rather than|used to be)\b"
)
DENIED_AFTER = re.compile(
    r"^(?:\w+ ){0,2}?(?:(?:is|are|was|were|has been|have been) )?(?:no longer|not|wrong|cancelled|outdated|replaced)\b"
)
CLAUSE = re.compile(r"[.:](?!\d)|(?<!\d)[.:]|[;!?,()\n]|\bbut\b|\bhowever\b| - | -- ")
UNIT = re.compile(rf"(?<=\d)\s?[%\u2030{CURRENCY}](?!\w)|[{CURRENCY}](?=\s?\d)")  # an assertion may leave the unit out
GLUED = re.compile(r"(?<=\d)(?=[^\W\d_])|_")  # "5km" reads as "5 km"
HEDGES = {"unknown", "not known", "i don't know", "i do not know", "no answer"}


def tokens(text: str) -> list[str]:
    """Lower-case words and numbers; 8.12, 8:12 and -5 are one number each, 50% is 50."""
    return WORD.findall(_plain(text))


def says(text: str, assertion: Assertion) -> bool:
    """Whether a text says an assertion, or one of a list of them, somewhere without denying it. An assertion that denies something itself
    is looked for as it stands."""
    return any(_says(text, alternative) for alternative in ([assertion] if isinstance(assertion, str) else assertion))


def recall(text: str, assertions: Sequence[Assertion]) -> float | None:
    """The share of assertions that a text says; None where there are none."""
    return hits(text, assertions) / len(assertions) if assertions else None


def hits(text: str, assertions: Sequence[Assertion]) -> int:
    """How many of the assertions a text says."""
    return sum(says(text, assertion) for assertion in assertions)


def refuses(text: str) -> bool:
    """Whether an answer says that it does not know, and nothing else."""
    return " ".join(tokens(text)) in HEDGES or not tokens(text)


def _says(text: str, assertion: str) -> bool:
    wanted = tokens(assertion)
    denies = bool(DENIED_BEFORE.search(_plain(assertion)))
    for before, after in _occurrences(text, wanted) if wanted else ():
        if denies or not (DENIED_BEFORE.search(before) or DENIED_AFTER.search(after)):
            return True
    return False


def _occurrences(text: str, wanted: list[str]) -> Iterator[tuple[str, str]]:
    """What stands before and behind each occurrence, within its clause. The words may go on over a comma."""
    plain = _plain(text)
    matches = [(match.group(), match.start(), match.end()) for match in WORD.finditer(plain)]
    for at in range(len(matches) - len(wanted) + 1):
        if [word for word, _, _ in matches[at : at + len(wanted)]] == wanted:
            begin, end = matches[at][1], matches[at + len(wanted) - 1][2]
            before, after = CLAUSE.split(plain[:begin])[-1], CLAUSE.split(plain[end:])[0]
            yield " ".join(WORD.findall(before)[-BEFORE:]), " ".join(WORD.findall(after)[:AFTER])


def _plain(text: str) -> str:
    return GLUED.sub(" ", UNIT.sub("", folded(text)))

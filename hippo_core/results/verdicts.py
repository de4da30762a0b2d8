"""What a criterion can be found to be. Apart from how it is judged, so that who only counts verdicts imports no statistics."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

from hippo_core.files import read_object

Word = Literal["met", "not met", "not shown", "not judged"]
VERDICTS: tuple[Word, ...] = get_args(Word)


def tally(words: Iterable[str]) -> dict[Word, int]:
    """How many of these verdicts are met, not met, not shown and not judged, in this order."""
    counts = Counter(words)
    return {word: counts[word] for word in VERDICTS}


def counted(words: Iterable[str]) -> str:
    """The same in words: what the command line and the report say of a run."""
    return ", ".join(f"{count} {word}" for word, count in tally(words).items())


def read_verdicts(path: Path) -> list[str]:
    """The verdict on each criterion in a file that `write_criteria` wrote."""
    return [row["verdict"] for row in read_object(path)["criteria"]]


def read_invalid(path: Path) -> list[str]:
    """What such a file says of invalid cells."""
    return read_object(path).get("invalid", [])

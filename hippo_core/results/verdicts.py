"""What a criterion can be found to be. Apart from how it is judged, so that who only counts verdicts imports no statistics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from hippo_core.files import read_object

Word = Literal["met", "not met", "not shown", "not judged"]
VERDICTS: tuple[Word, ...] = get_args(Word)
GROUPS = {"memory": "claims about a memory", "control": "controls", "instrument": "checks of the instrument"}
LOW = 0.05  # a rival that scores no more answers hardly anything: to be above it says little


def tally(words: Iterable[str]) -> dict[Word, int]:
    """How many of these verdicts are met, not met, not shown and not judged, in this order."""
    counts = Counter(words)
    return {word: counts[word] for word in VERDICTS}


def counted(words: Iterable[str]) -> str:
    """The same in words: what the command line and the report say of a run."""
    return counts_in_words(tally(words))


def counts_in_words(counts: Mapping[Word, int]) -> str:
    """Counts of verdicts in words, in the order of the table."""
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def by_group(verdicts: Iterable[Mapping[str, Any]]) -> dict[str, dict[Word, int]]:
    """How many are met, not met, not shown and not judged of each group: claims about a memory, controls, checks of the instrument."""
    rows = list(verdicts)
    found = {name: [row["verdict"] for row in rows if row["about"] == about] for about, name in GROUPS.items()}
    return {name: tally(words) for name, words in found.items() if words}


def rivals_of_met(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """What the claims that are met were compared with: how many with a condition that scores at most LOW, and how many with a RAG."""
    met = [row for row in verdicts if row["about"] == "memory" and row["verdict"] == "met"]
    low = sum(row["mean_b"] is not None and row["mean_b"] <= LOW for row in met)
    rag = sum(row["b"].startswith("baselines/rag_") for row in met)
    return f"of the {len(met)} met, {low} compare with a condition that scores at most {LOW:g}, {rag} with a rag" if met else ""


def read_verdicts(path: Path) -> list[dict[str, Any]]:
    """The verdict on each criterion in a file that `write_criteria` wrote."""
    return read_object(path)["criteria"]


def read_invalid(path: Path) -> list[str]:
    """What such a file says of invalid cells."""
    return read_object(path).get("invalid", [])

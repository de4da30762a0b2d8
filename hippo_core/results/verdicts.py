"""What a criterion can be found to be. Apart from how it is judged, so that who only counts verdicts imports no statistics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from hippo_core.files import read_object

Word = Literal["met", "not met", "not shown", "not judged"]
VERDICTS: tuple[Word, ...] = get_args(Word)
GROUPS = {"claim": "claims", "control": "controls", "instrument": "checks of the instrument"}
RIVALS = {  # of a claim, by how its side b begins
    "baselines/rag_": "against a rag",
    "baselines/longctx": "against all facts in the prompt",
    "helped/": "against a rag or long context with the same program",
    "controls/oracle": "against the right facts in the prompt",
    "memory/": "against the memory with other settings",
    "ablations/": "against the memory with other settings",
    "": "against another condition",
}
NO_RIVAL = "without a rival"


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
    """How many are met, not met, not shown and not judged of each group: claims, controls, checks of the instrument."""
    rows = list(verdicts)
    words_of = {name: [row["verdict"] for row in rows if row["about"] == about] for about, name in GROUPS.items()}
    return {name: tally(listed) for name, listed in words_of.items() if listed}


def claims_by_rival(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """What the claims that were judged are compared with, and how many are met against each kind of rival; empty where none was judged."""
    judged: Counter[str] = Counter()
    met: Counter[str] = Counter()
    for row in [row for row in verdicts if row["about"] == "claim" and row["verdict"] != "not judged"]:
        kind = next(kind for start, kind in RIVALS.items() if row["b"].startswith(start)) if row["b"] else NO_RIVAL
        judged[kind] += 1
        met[kind] += row["verdict"] == "met"
    kinds = [kind for kind in dict.fromkeys((*RIVALS.values(), NO_RIVAL)) if judged[kind]]
    return f"claims met: {', '.join(f'{met[kind]} of {judged[kind]} {kind}' for kind in kinds)}" if kinds else ""


def read_verdicts(path: Path) -> list[dict[str, Any]]:
    """The verdict on each criterion in a file that `write_criteria` wrote."""
    return read_object(path)["criteria"]


def read_invalid(path: Path) -> list[str]:
    """What such a file says of invalid cells."""
    return read_object(path).get("invalid", [])

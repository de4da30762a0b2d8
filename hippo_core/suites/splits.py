"""Drawing by splits: a hash of a fact's content decides its split, so that train, val and test never share a fact.

A world that breaks a rule is thrown away and drawn again, and settings that no world can meet are an error, not a hang.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar
from zlib import crc32

from hippo_core.errors import LabError
from hippo_core.suites.types import Settings, Split

T = TypeVar("T")
SPLITS: tuple[Split, ...] = ("train", "val", "test")
MOST = 20_000
PER_PART = 40  # a split accepts a quarter of the draws, and many of these are there already


def split_of(key: str) -> Split:
    """The split of a fact with this content: a quarter of all are for validation, a quarter for the test, half for training."""
    bucket = crc32(key.encode()) % 4
    return "val" if bucket == 0 else "test" if bucket == 1 else "train"


def belongs(key: str, split: Split) -> bool:
    """Whether a fact with this content may be in this split."""
    return split_of(key) == split


def attempts(settings: Settings, what: str, parts: int = 1) -> Iterator[int]:
    """Count attempts at drawing `what`, which is made of `parts` of which each may take some; LabError when all are used up."""
    most = max(MOST, PER_PART * parts)
    yield from range(most)
    raise LabError(f"no {what} in {most} attempts that meets {settings!r}; raise n_facts, or lower n_items or n_competitors")


def interleaved(random: Random, rows: Sequence[Sequence[T]]) -> list[T]:
    """The elements of several rows in random turns, each row in its order."""
    turns = [number for number, row in enumerate(rows) for _ in row]
    random.shuffle(turns)
    waiting = [iter(row) for row in rows]
    return [next(waiting[number]) for number in turns]


def part_of(key: str) -> Split:
    """The split of a hand-written text: seven of ten are for training, one for validation, two for the test."""
    number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) % 10
    return "test" if number < 2 else "val" if number < 3 else "train"


def worded(texts: Sequence[str], split: Split) -> tuple[str, ...]:
    """The wordings of one statement that belong to a split. By their hashes a fifth is for the test and a tenth for validation, at least
    one each; all others are for training."""
    order = sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())
    tests, validations = max(1, len(texts) // 5), max(1, len(texts) // 10)
    chosen = {"test": order[:tests], "val": order[tests:][:validations], "train": order[tests + validations :]}[split]
    return tuple(text for text in texts if text in chosen)


def digest_of(folder: Path, files: Iterable[Path]) -> str:
    """The SHA-256 of files of a folder, by name and content."""
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()

"""Which split a fact belongs to: a hash of its content decides, so that train, val and test can never share one."""

from zlib import crc32

from hippo_core.suites.types import Split

SPLITS: tuple[Split, ...] = ("train", "val", "test")


def split_of(key: str) -> Split:
    """The split of a fact with this content: a quarter of all are for validation, a quarter for the test, half for training."""
    bucket = crc32(key.encode()) % 4
    return "val" if bucket == 0 else "test" if bucket == 1 else "train"


def belongs(key: str, split: Split) -> bool:
    """Whether a fact with this content may be told in this split."""
    return split_of(key) == split

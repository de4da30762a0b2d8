"""A look at a write-ahead log before SQLite reads it, which stops at the first frame that is not whole and drops all behind it without a
word (sqlite.org/fileformat2.html, section 4).

A kill or a power cut leaves no more than the last commit torn, for every other one was synced before the next began. So where two commits
or more end behind the first broken frame, something that was done would be lost. To know that costs a write nothing. Not known is damage to
the last commit alone, which looks like a torn one, or to the few bytes that say where the last but one ends.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER, FRAME = 32, 24  # bytes: of the log, and of each frame before its page
MAGIC = 0x377F0682  # sums are of words whose lowest byte is first; one more: whose highest is


def loses_commits(store: Path) -> bool:
    """Whether commits stand behind a damage in the log beside a store's file. It is looked at twice: what a writer is just writing there is
    whole the second time."""
    try:
        with store.open("rb") as file:
            page = int.from_bytes(file.read(18)[16:], "big")
        page = 65536 if page == 1 else page
        fits = page >= 512 and not page & (page - 1)
        return fits and all(_loses(store.with_name(f"{store.name}-wal"), page) for _ in range(2))
    except OSError:  # there is no log; or SQLite says why it cannot be read
        return False


def _loses(log: Path, page: int) -> bool:
    import numpy as np

    with log.open("rb") as file:
        content = file.read()
        file.seek(0)
        if file.read(HEADER) != content[:HEADER]:
            return False  # a writer begins it anew, which it does when all of it stands in the store
    count = (len(content) - HEADER) // (FRAME + page)
    if count < 2:
        return False
    header = np.frombuffer(content, ">u4", HEADER // 4)
    words = ">u4" if header[0] == MAGIC + 1 else "<u4"
    begun = np.array_equal(_sums(np.frombuffer(content, words, 6)[None], np.zeros((1, 2), np.uint32))[0], header[6:])
    frames = np.frombuffer(content, np.uint8, count * (FRAME + page), HEADER).reshape(count, -1)
    fields = frames[:, :FRAME].copy().view(">u4").astype(np.uint32)  # page, pages of the store after a commit or 0, two salts, two sums
    salts = header[4:6] if begun else fields[0, 2:4]
    of_this_log = (fields[:, 2:4] == salts).all(1)
    summed = np.hstack([frames[:, :8], frames[:, FRAME:]]).view(words)
    valid = of_this_log & (_sums(summed, np.vstack([header[6:], fields[:-1, 4:]])) == fields[:, 4:]).all(1)
    first = int(np.argmin(valid)) if begun and not valid.all() else count * begun
    return int((of_this_log & (fields[:, 1] > 0))[first:].sum()) > 1


def _sums(words: "NDArray", before: "NDArray") -> "NDArray":
    """The two sums uint32 of each row of words [N, W], which go on from those before it [N, 2]."""
    import numpy as np

    first_sum, second_sum = before.astype(np.uint32).T.copy()
    for first, second in zip(*[iter(np.ascontiguousarray(words.T).astype(np.uint32))] * 2, strict=True):
        first_sum += first + second_sum
        second_sum += second + first_sum
    return np.stack([first_sum, second_sum], 1)

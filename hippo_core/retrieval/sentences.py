"""The sentences of a text, each of which has a key of its own, so that a long passage is found by any one of them."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Behind a full stop, a question mark or an exclamation mark, closing quotes and brackets with it, before what begins a sentence.
BORDER = re.compile(r"(?<=[.!?])(?P<closing>[\"'”’)\]]*)\s+(?=[\"'“‘(\[]*[A-Z0-9])")


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order; the whole text where it has one or none."""
    starts = [0, *(match.end() for match in BORDER.finditer(text))]
    parts = [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [part for part in parts if part] or [text]


def joined(parts: Sequence[Sequence[str]]) -> tuple[list[str], NDArray[np.int64]]:
    """The parts [S] of several texts one after another, and where each text's begin [N]."""
    counts = np.array([len(part) for part in parts], dtype=np.int64)
    return [one for part in parts for one in part], np.cumsum(counts) - counts

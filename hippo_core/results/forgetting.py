"""What a matrix R[i, j] comes to: the accuracy on task j (columns, G of them) after phase i (rows, G + 1; 0: before the first). Task j is
learnt in phase j. Libraries differ in what they call forgetting, so each name here says its formula."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def diagonal(values: Matrix) -> Matrix:
    """R[j, j], what was just learnt, `(G,)`."""
    count = values.shape[1]
    return values[np.arange(1, count + 1), np.arange(count)]


def from_max(values: Matrix) -> Matrix:
    """The largest R[i, j] with i < G, less R[G, j] (Chaudhry et al. 2018, arXiv 1801.10112, section 3; there as here i may lie before
    j), `(G,)`."""
    return values[:-1].max(0) - values[-1]


def from_initial(values: Matrix) -> Matrix:
    """R[j, j] - R[G, j], the negative of backward transfer (Lopez-Paz & Ranzato 2017, arXiv 1706.08840, section 2), `(G,)`."""
    return diagonal(values) - values[-1]


def forward(values: Matrix) -> Matrix:
    """R[j - 1, j] - R[0, j]: what earlier tasks did for a task before it was learnt, forward transfer (Lopez-Paz & Ranzato 2017), of the
    tasks after the first, `(G - 1,)`."""
    count = values.shape[1]
    later = np.arange(1, count)
    return values[later, later] - values[0, later]


def mean(values: Any, chosen: Any = slice(None)) -> float:
    """The mean of some; NaN where there are none."""
    some = np.asarray(values, dtype=float)[chosen]
    return float(some.mean()) if some.size else float("nan")

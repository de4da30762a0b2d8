"""From scores to an order."""

import numpy as np


def standardised(scores: np.ndarray) -> np.ndarray:
    """z-scores [N] in float64; zeros where all scores are the same."""
    scores = scores.astype(np.float64)
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def ranked(scores: np.ndarray) -> list[int]:
    """Positions from the highest score to the lowest, compared to six decimals; of equals the first."""
    return np.argsort(-np.round(scores.astype(np.float64), 6), kind="stable").tolist()

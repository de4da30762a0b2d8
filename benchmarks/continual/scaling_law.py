"""The law of scaling L(N, D) = A / N^alpha + B / D^beta + E of a loss by the weights N of a model and the tokens D that it learnt from, and
its fit (Hoffmann et al. 2022, arXiv 2203.15556, section 3.3, approach 3): the Huber loss of log L, from a grid of beginnings. They minimise
it by L-BFGS, which with so small a constant takes thousands of steps and may stop early (Besiroglu et al. 2024, arXiv 2404.10102); here it
is scipy's least squares with a Huber loss."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from hippo_core.errors import LabError

HUBER = 1e-3  # as there: where the loss of a residual of log L turns from a square into a line
BEGINNINGS = ((2.0, 8.0), (2.0, 8.0), (0.0,), (0.5,), (0.3, 0.8))  # log A, log B, log E, alpha, beta
BOUNDS = ([-20.0, -20.0, -20.0, 0.0, 0.0], [60.0, 60.0, 10.0, 4.0, 4.0])
STEPS = 300  # of a fit at most
NAMES = ("A", "B", "E", "alpha", "beta")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """A fitted law; `vector` holds log A, log B, log E, alpha and beta."""

    vector: tuple[float, ...]

    def constants(self) -> dict[str, float]:
        """Its constants by name."""
        a, b, e, alpha, beta = self.vector
        return dict(zip(NAMES, (*np.exp([a, b, e]).tolist(), alpha, beta), strict=True))

    def loss(self, weights: ArrayLike, tokens: ArrayLike) -> Array:
        """L of these sizes, in the unit of the losses that it was fitted to."""
        return np.exp(_log_loss(np.asarray(self.vector), np.log(np.asarray(weights, float)), np.log(np.asarray(tokens, float)))[0])


def fit(weights: ArrayLike, tokens: ArrayLike, losses: ArrayLike, beginnings: Iterable[tuple[float, ...]] | None = None) -> Law:
    """The law of runs of so many weights, tokens and such losses, `(runs,)` each.

    Raises:
        LabError: fewer than five runs, fewer than three different N or D, or a value that is not above 0.
    """
    n, d, observed = (np.asarray(values, float) for values in (weights, tokens, losses))
    if len(observed) < len(NAMES) or min(len(set(n)), len(set(d))) < 3:
        runs = f"{len(observed)} runs of {len(set(n))} numbers of weights and {len(set(d))} of tokens"
        raise LabError(f"a law of five constants needs five runs, three numbers of weights and three of tokens, got {runs}")
    if not all((np.isfinite(values) & (values > 0)).all() for values in (n, d, observed)):
        raise LabError("a law needs weights, tokens and losses above 0")
    data, jac = (np.log(n), np.log(d), np.log(observed)), cast(Any, _gradient)
    tried = [
        least_squares(_residuals, begin, jac, BOUNDS, x_scale="jac", loss="huber", f_scale=HUBER, max_nfev=STEPS, args=data)
        for begin in beginnings or product(*BEGINNINGS)
    ]
    return Law(tuple(min(tried, key=lambda attempt: attempt.cost).x.tolist()))


def intervals(
    weights: ArrayLike, tokens: ArrayLike, losses: ArrayLike, law: Law, draws: int = 200, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """95% intervals of a law's constants: percentiles of the laws of runs drawn with replacement. Draws with fewer than three different N
    or D, which bear no law, are drawn again."""
    data = [np.asarray(values, float) for values in (weights, tokens, losses)]
    generator, made = np.random.default_rng(seed), []
    while len(made) < draws:
        chosen = generator.integers(0, len(data[0]), len(data[0]))
        if min(len(set(values[chosen])) for values in data[:2]) >= 3:
            made.append(fit(*(values[chosen] for values in data), beginnings=[law.vector]).constants())
    ends = {name: np.percentile([sample[name] for sample in made], (2.5, 97.5)) for name in NAMES}
    return {name: (float(low), float(high)) for name, (low, high) in ends.items()}


def _log_loss(vector: Array, log_n: Array, log_d: Array) -> tuple[Array, Array]:
    """log L and the terms it is made of, `(3, runs)`."""
    a, b, e, alpha, beta = vector
    terms = np.stack([a - alpha * log_n, b - beta * log_d, np.full_like(log_n, e)])
    return np.logaddexp.reduce(terms, axis=0), terms


def _residuals(vector: Array, log_n: Array, log_d: Array, log_losses: Array) -> Array:
    return _log_loss(vector, log_n, log_d)[0] - log_losses


def _gradient(vector: Array, log_n: Array, log_d: Array, _: Array) -> Array:
    """Of the residuals by the five constants, `(runs, 5)`."""
    log_loss, terms = _log_loss(vector, log_n, log_d)
    a, b, e = np.exp(terms - log_loss)
    return np.stack([a, b, e, -a * log_n, -b * log_d], 1)

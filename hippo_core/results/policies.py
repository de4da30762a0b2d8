"""The same answers under three policies of saying "unknown", after the fact: an answer's first token decides whether it is "unknown".

calibrated   "unknown" where `unknown_margin` > t or `evidence` < c; t and c are chosen for each condition on its validation worlds
may          "unknown" where the model would say so: `unknown_margin` > 0
never        "unknown" is never the answer

All conditions get the same grid and the same objective. What a preset says of "unknown" itself (`abstention`) has no part in this: the
columns `pred` and `score` follow it, those made here do not.
"""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from hippo_core.results.frames import Frame

POLICIES = ("calibrated", "may", "never")
SCORES = tuple(f"score_{name}" for name in POLICIES)
ABSTAINED = ("abstained_calibrated", "abstained_may")
CONDITION = ("model", "suite", "suite_overrides", "preset", "preset_overrides", "encoder", "regime", "stage", "step", "profile")
MEASURED = ("score", "score_forced", "unknown_margin", "evidence", "abstained")
UNKNOWN, UNANSWERABLE, DEFAULT = "unknown", "unanswerable", "default"  # an answer, how a profile ends, and one
NATS = (*sorted(np.arange(-8, 8.5, 0.5).tolist(), key=abs), math.inf)  # t; of equally good ones the first
SHARES = tuple(np.arange(0, 1, 0.05).tolist())  # c is one of these quantiles of the evidence of validation questions, or none
MOST_LOST = 0.02  # of the forced score of answerable validation questions


class Thresholds(NamedTuple):
    """An answer is "unknown" where its margin is above `nats` or its evidence below `evidence`."""

    nats: float
    evidence: float

    def __str__(self) -> str:
        parts = [f"above {self.nats:g} nats"] if self.nats < math.inf else []
        parts += [f"below an evidence of {self.evidence:.3g}"] if self.evidence > -math.inf else []
        return f"unknown {' or '.join(parts)}" if parts else "never unknown"


def with_policies(rows: Frame, validation: Frame) -> Frame:
    """Rows of answers with SCORES, ABSTAINED, and `calibrated_on`: the thresholds and the validation questions that chose them, or why
    there are none (`score_calibrated` is NaN then). `explore_unanswerable` counts to the profile `explore`, `unanswerable` to the default.
    A profile without validation questions has the thresholds of the default one.

    Args:
        rows: answers with the columns of a run (KEYS of results/records/read.py); NaN for those of earlier versions, which lack MEASURED.
        validation: the same of validation worlds; may be empty, or `rows` themselves.
    """
    mine, tuning = _answers(rows), _answers(validation)
    known = tuning[tuning["known"]] if len(tuning) else tuning
    by_condition = {key: known.take(positions) for key, positions in _by_condition(known).items()}
    chosen = {key: _chosen(questions) for key, questions in by_condition.items()}
    abstained, why = np.full(len(mine), math.nan), np.full(len(mine), "no validation questions of this condition", dtype=object)
    for key, positions in _by_condition(mine).items():
        default = (*key[:-1], DEFAULT)
        source = key if key in chosen else default
        if source in chosen:
            thresholds, questions = chosen[source]
            abstained[positions] = _says_unknown(mine.take(positions), thresholds.nats, thresholds.evidence)
            why[positions] = f"{thresholds}, from {questions}{'' if source == key else f' of profile {DEFAULT}'}"
    known, margin = mine["known"].to_numpy(), mine["unknown_margin"].to_numpy()
    why[~known] = 'the rows do not say how near "unknown" was'
    by_policy = {
        "calibrated": np.where(known, abstained, math.nan),
        "may": np.where(known, margin > 0, math.nan),
        "never": np.zeros(len(mine)),
    }
    scores = {f"score_{name}": _score(mine, by_policy[name]) for name in POLICIES}
    return rows.assign(**scores, **{f"abstained_{name}": by_policy[name] for name in ("calibrated", "may")}, calibrated_on=why)


def _answers(rows: Frame) -> Frame:
    """What the policies need of each row: its condition, what was measured, whether all of it is `known`, whether it is `unanswerable`, and
    the score of the answer "unknown"."""
    names = {name: rows[name].fillna("").astype(str) if name in rows else "" for name in CONDITION}
    answers = pd.DataFrame({**names, **{name: rows.get(name, math.nan) for name in MEASURED}}, index=rows.index)
    answers = answers.reset_index(drop=True)
    answers["profile"] = answers["profile"].str.removesuffix(UNANSWERABLE).str.rstrip("_").replace("", DEFAULT)
    answers["suite_overrides"] = answers["suite_overrides"].replace({f"{UNANSWERABLE}={value}": "" for value in ("true", "True")})
    gold = (rows["answer"] if "answer" in rows else pd.Series("", index=rows.index)).astype(str).str.casefold().reset_index(drop=True)
    accepted = gold.map({text: float(UNKNOWN in text.split(" | ")) for text in gold.unique()}).astype(float)
    answers["unanswerable"] = gold == UNKNOWN
    answers["score_unknown"] = answers["score"].where(answers["abstained"] == 1, accepted)
    answers["known"] = answers["score_forced"].notna() & answers["unknown_margin"].notna()
    return answers


def _by_condition(answers: Frame) -> dict[tuple[str, ...], np.ndarray]:
    """The positions of the rows of each condition."""
    return answers.groupby(list(CONDITION), sort=False).indices if len(answers) else {}


def _says_unknown(answers: Frame, nats: np.ndarray | float, evidence: np.ndarray | float) -> np.ndarray:
    """Which answers are "unknown" under these thresholds; those without evidence have less than any. Broadcast over the last axis [N]."""
    fits = answers["evidence"].fillna(-math.inf).to_numpy(dtype=float)
    return (answers["unknown_margin"].to_numpy(dtype=float) > nats) | (fits < evidence)


def _score(answers: Frame, abstained: np.ndarray) -> np.ndarray:
    """The scores where these answers are "unknown" and the others are not [..., N]; NaN where that is not known."""
    forced = answers["score_forced"].to_numpy(dtype=float)
    scores = np.where(abstained == 1, answers["score_unknown"].to_numpy(dtype=float), forced)
    return np.where(np.isnan(abstained) | np.isnan(forced), math.nan, scores)


def _chosen(questions: Frame) -> tuple[Thresholds, str]:
    """The thresholds that these validation questions choose, and what they are in words.

    Of all on the grid that lose at most MOST_LOST of the answerable questions' forced score: those with the highest mean of the score of
    answerable and of unanswerable questions, at equal weight (of answerable ones alone where there are no others); of these the one that
    says "unknown" least often, and never where that is as good.
    """
    evidence = questions["evidence"].dropna()
    levels = [-math.inf, *(np.unique(np.quantile(evidence, SHARES)).tolist() if len(evidence) else [])]
    grid = np.array([(math.inf, -math.inf), *product(NATS, levels)])
    abstained = _says_unknown(questions, grid[:, :1], grid[:, 1:])
    scores = _score(questions, abstained.astype(float))
    unanswerable = questions["unanswerable"].to_numpy()
    means = [scores[:, group].mean(1) for group in (~unanswerable, unanswerable) if group.any()]
    allowed = (
        np.full(len(grid), True) if unanswerable.all() else means[0] >= questions["score_forced"][~unanswerable].mean() - MOST_LOST - 1e-9
    )
    worth = np.where(allowed, np.mean(means, axis=0).round(9), -math.inf)
    best = min(range(len(grid)), key=lambda point: (-worth[point], abstained[point].sum(), point))
    asked = [f"{group.sum():,} {name}" for name, group in (("answerable", ~unanswerable), ("unanswerable", unanswerable)) if group.any()]
    return Thresholds(*map(float, grid[best])), f"{' and '.join(asked)} validation questions"

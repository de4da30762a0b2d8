"""From item rows to the numbers that figures and tables show: means with world-clustered intervals, and paired differences.

Seeds are pooled: a world of one seed and a world of another are different clusters.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
import pandas as pd

from hippo_core.errors import LabError
from hippo_core.results.conditions import REGIMES, base, condition_name, ignores_window, ordered
from hippo_core.results.formatting import NONE, missing, share
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.results.statistics.paired import Comparison, compare

Option = TypeVar("Option")
ANSWERED_BY = {"by_model": "model", "by_copying": "program, model copies", "by_program": "program"}  # a column for each `composed_by`

RIVAL_RAGS = tuple(  # those that "the best rag" is chosen from
    f"baselines/rag_{name}"
    for name in ("bm25", "grams", "dense", "hybrid", "sum", "sum_head", "rerank", "fitted", "fitted_rerank", "head", "head_fitted")
)
OWN_VECTORS = "rag with the model's own vectors"  # what a verdict says where there is no other


def allowed_rivals(options: Sequence[Option], encoders: Sequence[str | None]) -> list[Option]:
    """The options that may stand for the best rag: those with the encoder `own` only where none has the encoder `minilm`."""
    published = "minilm" in encoders
    return [option for option, encoder in zip(options, encoders, strict=True) if not (published and encoder == "own")]


PAIRING = ("key", "cluster", "seed", "world", "question", "answer")
RUNGS = ("exact", "partial", "paraphrase", "noisy")


def labelled(rows: Frame) -> Frame:
    """The rows with columns of a run where they lack them: condition, encoder, regime, cluster (seed and world), key (seed and item)."""
    seed = rows["seed"].astype(str) if "seed" in rows else ""
    extra = {
        "condition": lambda: rows["preset"],
        "encoder": lambda: "",
        "regime": lambda: "delayed",
        "cluster": lambda: seed + "/" + rows["world"].astype(str),
        "key": lambda: seed + "/" + rows["item_id"].astype(str),
    }
    return rows.assign(**{name: make() for name, make in extra.items() if name not in rows})


def in_both_regimes(rows: Frame) -> Frame:
    """Rows with the delayed rows of conditions that ignore the window repeated as immediate ones (`shared` = 1)."""
    rows = labelled(rows)
    if not (rows["regime"] == "immediate").any():
        return rows.assign(shared=0)
    has = set(rows.loc[rows["regime"] == "immediate", "condition"])
    once = {name for name in rows["condition"].unique() if ignores_window(name) and name not in has}
    again = rows[rows["condition"].isin(once) & (rows["regime"] == "delayed")]
    return pd.concat([rows.assign(shared=0), again.assign(regime="immediate", shared=1)], ignore_index=True)


def regimes_of(rows: Frame) -> list[str]:
    """The regimes present, in the order of an experiment; others last."""
    there = set(rows["regime"].dropna())
    return [*(name for name in REGIMES if name in there), *sorted(there - set(REGIMES))]


@lru_cache(maxsize=4096)
def _interval(values: bytes, clusters: tuple[str, ...]) -> tuple[float, float, float]:
    known = np.frombuffer(values)
    interval = cluster_interval(known, np.array(clusters, dtype=object), bounds=None if max(known) > 1 else (0.0, 1.0))
    return interval.mean, interval.low, interval.high


def estimate(rows: Frame, by: Sequence[str], value: str = "score") -> Frame:
    """Mean of `value` in each group, of rows that were scored: `by`, mean, low, high (95%, by world), n, n_worlds, chance."""
    rows = labelled(rows)
    rows = rows[rows[value].notna()]
    estimates = []
    for names, group in rows.groupby(list(by), sort=False, observed=True):
        mean, low, high = _interval(group[value].to_numpy(float).tobytes(), tuple(group["cluster"]))
        chance = group["chance"].mean() if "chance" in group else float("nan")
        counts = len(group), group["cluster"].nunique()
        estimates.append((*names, mean, low, high, *counts, chance))
    return pd.DataFrame(estimates, columns=[*by, "mean", "low", "high", "n", "n_worlds", "chance"])


def with_answered_by(rows: Frame) -> Frame:
    """The rows with a column for each of ANSWERED_BY, 1 where the answer was composed so, else 0; NaN where a row does not say."""
    by = rows.get("composed_by", pd.Series(np.nan, index=rows.index)).replace("", np.nan)
    return rows.assign(**{column: (by == words).astype(float).where(by.notna()) for column, words in ANSWERED_BY.items()})


def answered_by(shares: Mapping[str, float | None]) -> str:
    """Who computed most of the answers, with their share where it is not 1: `program, model copies 0.93`; a dash where it is not known.
    `shares`: the mean of each column of ANSWERED_BY."""
    known = {words: shares.get(column) for column, words in ANSWERED_BY.items()}
    if any(map(missing, known.values())):
        return NONE
    words, most = max(known.items(), key=lambda entry: entry[1] or 0.0)
    return words if round(most or 0.0, 9) == 1 else f"{words} {share(most)}"


def order_of(rows: Frame, column: str) -> list:
    """The values of a column in the order of its axis: sorted, but the rungs of the lab first."""
    values = sorted(rows[column].dropna().unique())
    return sorted(values, key=lambda name: RUNGS.index(name) if name in RUNGS else len(RUNGS)) if column == "rung" else values


def best_rag(rows: Frame, validation: Frame | None = None) -> tuple[str | None, bool]:
    """The rag with the highest mean, and whether validation worlds chose it, which must hold all rags of the rows; else it is the highest
    on the rows themselves. Rags with other settings do not stand for it, nor the model's own vectors beside a published encoder."""
    encoders = dict(zip(labelled(rows)["condition"], labelled(rows)["encoder"], strict=True))
    rags = [name for name in ordered(encoders) if base(name) in RIVAL_RAGS]
    plain = [name for name in rags if name in (base(name), condition_name(base(name), encoders[name]))]
    names = allowed_rivals(plain, [encoders[name] for name in plain])
    derived = validation is not None and len(validation) > 0 and set(names) <= set(validation["condition"])
    means = (validation if derived else labelled(rows)).groupby("condition")["score"].mean()  # type: ignore[union-attr]
    best = max((means[name] for name in names), default=None)
    return next(((name, derived) for name in names if means[name] == best), (None, False))


def pair(rows: Frame, a: tuple[str, str], b: tuple[str, str], metric: str = "score") -> Comparison | None:
    """Condition and regime a against b on the seeds that both have; None where they share none or their items do not pair."""
    columns = [*PAIRING, metric]
    tables = [rows.loc[(rows["condition"] == name) & (rows["regime"] == regime), columns] for name, regime in (a, b)]
    seeds = set(tables[0]["seed"]) & set(tables[1]["seed"])
    tables = [table[table["seed"].isin(seeds)] for table in tables]
    try:
        return compare(*tables, metric=metric, key="key", cluster="cluster") if seeds else None
    except LabError:
        return None

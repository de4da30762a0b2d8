"""Two conditions, compared item by item. Repeats of an item are averaged before anything is tested: they are no items of their own."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hippo_core.errors import LabError
from hippo_core.protocols.paired.conditions import AGENT_SCORES, CONDITIONS, MEMORY
from hippo_core.protocols.paired.run_files import PairedRun, read_run
from hippo_core.protocols.paired.scoring import SCORES
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import numbered
from hippo_core.results.statistics.paired import Comparison, holm, mcnemar, mcnemar_mid, of_numbered_pairs
from hippo_core.results.statistics.paired import paired as pair_up

DIFFER = ("model", "memory", "profile", "answer_mode", "encoder", "seed", "repeats")  # that two runs may differ in; it is reported
GROUPED = ("world", "type", "tags")
PER_ITEM = ("tokens_in", "tokens_out", "tokens_cached", "recall_s", "answer_s")
COSTS = ("tokens", "tokens_cached", "seconds")  # of an item; tokens in and out, and seconds of recall and answer
NUMBERS = ("success", *SCORES, *AGENT_SCORES, *PER_ITEM, "tokens", "seconds")


@dataclass(frozen=True)
class RunCondition:
    """One condition of a run: a row an answer."""

    name: str
    run: PairedRun
    rows: Frame


@dataclass(frozen=True)
class ItemGroup:
    """The items of a tag or a type: success of both conditions, and p (by permutation) after Holm's correction over all groups."""

    name: str
    result: Comparison
    p_holm: float


@dataclass(frozen=True)
class Cost:
    """What a condition cost on the items that both were asked. `tokens`: in and out; cached ones are part of those in and not added again;
    `unstated`: answers whose tokens nobody stated, which are not in it. `per_success`: as `tokens_per_success`."""

    tokens: float
    cached: float
    seconds: float
    successes: float
    per_success: float
    unstated: int = 0


@dataclass(frozen=True)
class Tests:
    """Success of a candidate and a baseline. `success.difference` is the candidate's less the baseline's, `success.harmed` the share of
    items that the baseline did better. `gained` and `lost` count items at which one alone succeeds; with repeats an item succeeds where
    more than half of them do. `p_mcnemar` (exact) and `p_mid` (mid-p) are of these."""

    success: Comparison
    gained: int
    lost: int
    p_mcnemar: float
    p_mid: float


@dataclass(frozen=True)
class Paired(Tests):
    """Candidate against baseline, with what else they differ in; `metrics`: scores and, of agents, shares of what passed; `cost_metrics`:
    what an item cost; `discordant`: the items at which one alone succeeds."""

    baseline: RunCondition
    candidate: RunCondition
    metrics: dict[str, Comparison]
    cost_metrics: dict[str, Comparison]
    costs: tuple[Cost, Cost]
    groups: list[ItemGroup]
    differs: dict[str, tuple[Any, Any]]
    discordant: Frame


def read_run_condition(name: str) -> RunCondition:
    """`RUN:CONDITION`: a condition of a run. LabError where the run has no such one."""
    run_name, _, condition = name.rpartition(":")
    if not run_name:
        raise LabError(f"expected RUN:CONDITION, as paired:full-memory, got {name!r}")
    return run_condition(read_run(run_name), condition)


def run_condition(run: PairedRun, condition: str) -> RunCondition:
    """A condition of a run."""
    rows: Frame = run.rows[run.rows["condition"] == condition]
    if rows.empty:
        raise LabError(f"{run.folder}: no condition {condition!r}; it holds: {', '.join(run.conditions)}")
    return RunCondition(condition, run, rows.reset_index(drop=True))


def compare_conditions(baseline: RunCondition, candidate: RunCondition) -> Paired:
    """Compare two conditions. LabError where their suites are not the same, byte by byte, or the items are not."""
    require_same(baseline.run, candidate.run)
    left, right = aligned(*(by_item(_with_costs(condition.rows)) for condition in (candidate, baseline)))
    known = {name for name in left if name in right and left[name].notna().any() and right[name].notna().any()}
    won, had = succeeded(left), succeeded(right)
    differs = np.flatnonzero(np.abs(won - had) == 1)
    texts = candidate.rows[["item", "question", "answer"]].iloc[left["first"].iloc[differs]].reset_index(drop=True)
    answers = baseline.rows["answer"].iloc[right["first"].iloc[differs]].to_numpy()
    texts = texts.assign(answer_b=answers, gained=won[differs] == 1)
    ours, theirs = ({**run.about["settings"], "model": run.about.get("model")} for run in (baseline.run, candidate.run))
    return Paired(
        **vars(tests(left, right)),
        baseline=baseline,
        candidate=candidate,
        metrics={name: compared(left, right, name) for name in (*SCORES, *AGENT_SCORES) if name in known},
        cost_metrics={name: compared(left, right, name, shares=False) for name in COSTS if name in known},
        costs=(_cost(baseline.rows), _cost(candidate.rows)),
        groups=grouped(left, right),
        differs={name: (ours.get(name), theirs.get(name)) for name in DIFFER if ours.get(name) != theirs.get(name)},
        discordant=texts.sort_values(["gained", "item"], ignore_index=True),
    )


def require_same(a: PairedRun, b: PairedRun) -> None:
    """LabError where two runs do not rest on the same manifest, items, notes, fixtures and scripts."""
    ours, theirs = a.about["checksums"], b.about["checksums"]
    if other := [name for name in dict.fromkeys((*ours, *theirs)) if ours.get(name) != theirs.get(name)]:
        names = f"{a.folder.name} and {b.folder.name}"
        raise LabError(f"not comparable: {names} rest on other {', '.join(other)} (SHA-256); run both on one suite")


def by_item(rows: Frame) -> Frame:
    """A line an item, in the order of their ids: numbers are means over its repeats; `first` is the index of its first row, of which the
    texts are, `cluster` the number of its world."""
    codes, items = pd.factorize(rows["item"], sort=True)
    first = np.full(len(items), len(rows))
    np.minimum.at(first, codes, np.arange(len(rows)))
    numbers = rows[[name for name in NUMBERS if name in rows]].astype(float)
    means = numbers.iloc[first].reset_index(drop=True) if len(items) == len(rows) else numbers.groupby(codes).mean()
    texts = rows[["item", *GROUPED]].iloc[first].reset_index(drop=True).assign(first=first)
    texts["cluster"] = numbered(texts["world"].to_numpy())
    return pd.concat([texts, means], axis="columns")


def items_by_condition(rows: Frame) -> dict[str, Frame]:
    """The items of each condition of a run, in the order of conditions.py."""
    known = set(rows["condition"])
    return {name: by_item(rows[rows["condition"] == name]) for name in CONDITIONS if name in known}


def aligned(candidate: Frame, baseline: Frame) -> tuple[Frame, Frame]:
    """Two tables of items, which must be the same ones of the same worlds, as all functions below ask for; LabError, which names the first
    mismatch, otherwise."""
    if not (candidate["item"].equals(baseline["item"]) and candidate["world"].equals(baseline["world"])):
        pair_up(candidate.assign(answer=""), baseline.assign(answer=""), "success", "item", "world")  # raises
    return candidate, baseline


def succeeded(rows: Frame) -> NDArray[np.float64]:
    """1 or 0 for each item, NaN where it can neither succeed nor fail; of repeats more than half must succeed."""
    success = rows["success"].to_numpy()
    return np.where(np.isnan(success), np.nan, success > 0.5)


def tests(candidate: Frame, baseline: Frame) -> Tests:
    """Success of two tables of items, tested by worlds and by items."""
    gained, lost = item_counts(candidate, baseline)
    return Tests(compared(candidate, baseline, "success"), gained, lost, mcnemar(gained, lost), mcnemar_mid(gained, lost))


def item_counts(candidate: Frame, baseline: Frame) -> tuple[int, int]:
    """How many items the candidate alone succeeds at, and the baseline alone."""
    won, had = succeeded(candidate), succeeded(baseline)
    return int((won > had).sum()), int((had > won).sum())


def compared(candidate: Frame, baseline: Frame, metric: str, shares: bool = True) -> Comparison:
    """A metric of two tables of items, paired; worlds are the clusters. Items to which either gives no value are left out."""
    return of_numbered_pairs(*(column.to_numpy() for column in (candidate[metric], baseline[metric], candidate["cluster"])), shares=shares)


def grouped(candidate: Frame, baseline: Frame) -> list[ItemGroup]:
    """Success by type and by tag, p corrected over all groups by Holm."""
    codes, sets = pd.factorize(candidate["tags"])
    tags = [set(tag_set.split(";")) - {""} for tag_set in sets]  # of each set that an item has
    groups = {f"type:{kind}": (candidate["type"] == kind).to_numpy() for kind in sorted(candidate["type"].unique())}
    groups |= {f"tag:{tag}": np.array([tag in tag_set for tag_set in tags])[codes] for tag in sorted(set().union(*tags))}
    columns = [column.to_numpy() for column in (candidate["success"], baseline["success"], candidate["cluster"])]
    results = [of_numbered_pairs(*(column[own] for column in columns)) for own in groups.values()]
    corrected = holm([result.p_permutation for result in results])
    return [ItemGroup(name, result, p) for name, result, p in zip(groups, results, corrected, strict=True)]


def _with_costs(rows: Frame) -> Frame:
    """Rows with the tokens and the seconds of each answer; tokens are NaN where they are not stated both in and out."""
    return rows.assign(tokens=rows["tokens_in"] + rows["tokens_out"], seconds=rows[["recall_s", "answer_s"]].sum(axis=1, min_count=1))


def _cost(rows: Frame) -> Cost:
    sums, unstated = _with_costs(rows)[[*COSTS, "success"]].sum(), int(rows[["tokens_in", "tokens_out"]].isna().any(axis=1).sum())
    tokens, cached, seconds, successes = (float(sums[name]) for name in (*COSTS, "success"))
    return Cost(tokens, cached, seconds, successes, tokens_per_success(rows), unstated)


def tokens_per_success(rows: Frame) -> float:
    """Tokens, in and out, of the answers that state them, for each success among these answers; infinite where none succeeds."""
    stated = rows[rows["tokens_in"].notna() & rows["tokens_out"].notna()]
    successes = float(stated["success"].sum())
    return float(stated["tokens_in"].sum() + stated["tokens_out"].sum()) / successes if successes else math.inf


def pairs_of(rows: Frame) -> list[dict[str, Any]]:
    """The memory under test against each other condition of a run; nothing where it was not run. What is unknown or infinite is None."""
    by_condition = items_by_condition(rows)
    if MEMORY not in by_condition:
        return []
    memory, pairs = by_condition.pop(MEMORY), []
    for name, own in by_condition.items():
        values = asdict(tests(*aligned(memory, own)))
        success = values.pop("success")
        pairs.append({"baseline": name, **success, **values})
    for pair, corrected in zip(pairs, holm([pair["p_permutation"] for pair in pairs]), strict=True):
        pair["p_holm"] = corrected
    return [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in pair.items()} for pair in pairs
    ]

"""Pair the items of two logs and test their difference. Nothing is compared that was not asked of both."""

from dataclasses import dataclass, replace

from hippo_core.errors import LabError
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.paired import Comparison, compare
from hippo_core.results.two_runs.logs import LARGEST, Log

NAMED = 3  # items that an error lists
TOLERANCE = 1e-9


@dataclass(frozen=True)
class TwoRuns:
    """The comparison of `metric` of two logs.

    Args:
        result: its difference is A's mean less B's; `only_a` counts what A did better, whichever way the metric goes.
        discordant: a line an item that one did better, A's first: item_id, cluster, better, question, answer, pred_a, pred_b, a, b.
        differs: what the runs say of themselves that is not the same: name -> A's, B's.
        costs: means of what an item cost on either side.
        largest: the cluster that holds most of the items, and its share.
        suite: of a run of this lab.
        unscored: items without a value of the metric on either side.
    """

    a: Log
    b: Log
    metric: str
    result: Comparison
    discordant: Frame
    differs: dict[str, tuple[str, str]]
    costs: dict[str, tuple[float, float]]
    higher_is_better: bool = True
    largest: tuple[str, float] = ("", 0.0)
    suite: str = ""
    unscored: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class BySuite:
    """Two runs of this lab, compared suite by suite; `only_a` and `only_b` are the suites that one of them alone holds."""

    compared: tuple[TwoRuns, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


def compare_suites(a: Log, b: Log, metric: str = "") -> BySuite:
    """Compare two logs as `compare_runs` does, runs of this lab suite by suite: each that both hold. LabError where they share none."""
    if not (a.suites and b.suites):
        return BySuite((compare_runs(a, b, metric),))
    shared = [name for name in a.suites if name in b.suites]
    if not shared:
        raise LabError(f"no suite in both runs: {a.name} holds {', '.join(a.suites)}; {b.name} holds {', '.join(b.suites)}")
    compared = tuple(replace(compare_runs(a.suites[name], b.suites[name], metric), suite=name) for name in shared)
    only_a, only_b = (tuple(name for name in log.suites if name not in shared) for log in (a, b))
    return BySuite(compared, only_a, only_b)


def compare_runs(a: Log, b: Log, metric: str = "") -> TwoRuns:
    """Compare two logs of one kind by a metric that both have; the first of A's unless named. Runs of several suites are for
    `compare_suites`.

    Raises:
        LabError: they are of two kinds, do not share the metric, or do not hold the same items once each with the same question (unless an
            item is a document) and expected answer.
    """
    if a.kind != b.kind:
        raise LabError(f"{a.name} is a log of {a.kind}, {b.name} of {b.kind}; items can be paired within one kind alone")
    if several := next((log for log in (a, b) if len(log.suites) > 1), None):
        raise LabError(f"{several.name} holds several suites: {', '.join(several.suites)}; compare them one by one (--suite)")
    shared = [name for name in a.metrics if name in b.metrics]
    if not shared or (metric and metric not in shared):
        raise LabError(f"{f'no metric {metric!r}' if metric else 'no metric'} in both runs; shared: {', '.join(shared) or 'none'}")
    if not metric and a.metrics[0] != b.metrics[0]:
        first = f"{a.name} is judged by {a.metrics[0]} first, {b.name} by {b.metrics[0]}"
        raise LabError(f"{first}; choose one of both with --metric: {', '.join(shared)}")
    metric = metric or shared[0]
    _same_items(a, b)
    columns = ["item_id", "cluster", "question", "answer", "pred", metric]
    left, right = (log.rows.reindex(columns=columns).astype({metric: float}) for log in (a, b))
    for log, rows in ((a, left), (b, right)):
        if len(infinite := rows[rows[metric].abs() > LARGEST]):
            raise LabError(
                f"{log.name}: {len(infinite):,} items have an infinite {metric} (first: {infinite['item_id'].iloc[0]}); mend the log"
            )
    first, second = (table.drop(columns="question") if a.by_document else table for table in (left, right))
    result = compare(first, second, metric, key="item_id", cluster="cluster")
    if not result.n:
        others = ", ".join(name for name in shared if name != metric) or "none"
        raise LabError(f"no item has a value of {metric} in both runs; other metrics that both have, for --metric: {others}")
    unscored = (int(left[metric].isna().sum()), int(right[metric].isna().sum()))
    higher = metric not in a.lower | b.lower
    if not higher:  # of the mirror image it is the one with less that is better
        mirror = compare(second, first, metric, key="item_id", cluster="cluster")
        better = {name: getattr(mirror, name) for name in ("only_a", "only_b", "harmed", "harmed_low", "harmed_high")}
        result = replace(result, **better)
    costs = {name: (float(a.rows[name].mean()), float(b.rows[name].mean())) for name in a.costs if name in b.costs}
    names = dict.fromkeys((*a.about, *b.about))
    differs = {name: (a.about.get(name, ""), b.about.get(name, "")) for name in names if a.about.get(name) != b.about.get(name)}
    both: Frame = left.merge(right, on="item_id", suffixes=("", "_b"))
    if a.by_document and (other := int((both["question"] != both["question_b"]).sum())):
        differs["prompts"] = ("", f"{other:,} of {len(both):,} are not A's")
    shares = left["cluster"].value_counts(normalize=True)
    largest = str(shares.index[0]), float(shares.iloc[0])
    return TwoRuns(a, b, metric, result, _discordant(both, metric, higher), differs, costs, higher, largest, unscored=unscored)


def _same_items(a: Log, b: Log) -> None:
    ours, theirs = (dict.fromkeys(log.rows["item_id"]) for log in (a, b))
    missing = [[item for item in ours if item not in theirs], [item for item in theirs if item not in ours]]
    differences = []
    for log, items in zip((a, b), missing, strict=True):
        named = ", ".join(items[:NAMED]) + (", ..." if len(items) > NAMED else "")
        differences += [f"{len(items):,} of {len(log.rows):,} only in {log.name} ({named})"] if items else []
    if differences:
        why = "Another seed, limit, split, task or version of the data? Run both alike"
        raise LabError(f"the runs do not hold the same items: {'; '.join(differences)}. {why}")


def _discordant(both: Frame, metric: str, higher: bool) -> Frame:
    """The items of both runs on which they differ."""
    difference = both[metric] - both[f"{metric}_b"]
    both = both.assign(difference=difference, better=["a" if (value > 0) == higher else "b" for value in difference])
    both = both[both["difference"].abs() > TOLERANCE].sort_values(["better", "item_id"], kind="stable")
    both = both.rename(columns={"pred": "pred_a", metric: "a", f"{metric}_b": "b"}).reset_index(drop=True)
    return both[["item_id", "cluster", "better", "question", "answer", "pred_a", "pred_b", "a", "b"]]

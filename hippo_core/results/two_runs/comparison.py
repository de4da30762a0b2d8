"""Open two logs, pair their items and test their difference. Nothing is compared that was not asked of both."""

from dataclasses import dataclass, replace
from pathlib import Path

from hippo_core.errors import LabError, shortened
from hippo_core.files import root
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.paired import Comparison, compare
from hippo_core.results.two_runs import inspect_ai, lab, lm_eval
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


def open_log(source: str, cluster: str = "", task: str = "", filter_name: str = "", split: str = "", suite: str = "") -> Log:
    """The log at `source`: a run or a record of this lab (`RUN`, or `RUN:PRESET` where it holds several conditions), a `samples_*.jsonl` or
    the folder that holds it, an `.eval` of inspect_ai. `cluster`: the field that says which items belong together; `task` and `filter_name`
    choose one of several; `split` (test unless given) and `suite` are of runs of this lab. LabError says what is wrong."""
    path = Path(source)
    try:
        of_harness = path.suffix == ".jsonl" or (path.is_dir() and any(path.rglob("samples_*.jsonl")))
        if (split or suite) and (of_harness or path.suffix == ".eval"):
            raise LabError(f"{source}: --split and --suite choose from runs of this lab; this is a log of another program")
        if path.suffix == ".eval":
            return inspect_ai.read(path, cluster)
        if of_harness:
            return lm_eval.read(path, cluster, task, filter_name)
        run, _, condition = source.partition(":")
        for folder in (Path(run), root() / "executed" / run):
            if folder.is_dir():
                return lab.read(folder, condition, cluster, split or "test", suite)
    except RecursionError:
        raise LabError(f"{source}: holds a value that is nested too deep; no log of this kind has one") from None
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise LabError(f"{shortened(source)} cannot be read: {error.strerror}; name a run or a log") from None
    raise LabError(
        f"no run at {source}: expected a run of this lab (its name below executed/, or a folder; RUN:PRESET where it holds several), "
        "samples_*.jsonl of lm-evaluation-harness (--log_samples) or the folder that holds them, or an .eval file of inspect_ai"
    )


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
    metric = _metric(a, b, metric, shared)
    _require_same_items(a, b)
    left, right = _scored(a, metric), _scored(b, metric)
    first, second = (table.drop(columns="question") if a.by_document else table for table in (left, right))
    result = compare(first, second, metric, key="item_id", cluster="cluster")
    if not result.n:
        others = ", ".join(name for name in shared if name != metric) or "none"
        raise LabError(f"no item has a value of {metric} in both runs; other metrics that both have, for --metric: {others}")
    higher = metric not in a.lower | b.lower
    if not higher:  # of the mirror image it is the one with less that is better
        mirror = compare(second, first, metric, key="item_id", cluster="cluster")
        better = {name: getattr(mirror, name) for name in ("only_a", "only_b", "harmed", "harmed_low", "harmed_high")}
        result = replace(result, **better)
    both: Frame = left.merge(right, on="item_id", suffixes=("", "_b"))
    names = dict.fromkeys((*a.about, *b.about))
    differs = {name: (a.about.get(name, ""), b.about.get(name, "")) for name in names if a.about.get(name) != b.about.get(name)}
    if a.by_document and (other := int((both["question"] != both["question_b"]).sum())):
        differs["prompts"] = ("", f"{other:,} of {len(both):,} are not A's")
    costs = {name: (float(a.rows[name].mean()), float(b.rows[name].mean())) for name in a.costs if name in b.costs}
    shares = left["cluster"].value_counts(normalize=True)
    largest = str(shares.index[0]), float(shares.iloc[0])
    unscored = (int(left[metric].isna().sum()), int(right[metric].isna().sum()))
    return TwoRuns(a, b, metric, result, _discordant(both, metric, higher), differs, costs, higher, largest, unscored=unscored)


def _metric(a: Log, b: Log, metric: str, shared: list[str]) -> str:
    """The metric to compare by: the one that is asked for, else the first of both."""
    if not shared or (metric and metric not in shared):
        raise LabError(f"{f'no metric {metric!r}' if metric else 'no metric'} in both runs; shared: {', '.join(shared) or 'none'}")
    if not metric and a.metrics[0] != b.metrics[0]:
        first = f"{a.name} is judged by {a.metrics[0]} first, {b.name} by {b.metrics[0]}"
        raise LabError(f"{first}; choose one of both with --metric: {', '.join(shared)}")
    return metric or shared[0]


def _scored(log: Log, metric: str) -> Frame:
    rows: Frame = log.rows.reindex(columns=["item_id", "cluster", "question", "answer", "pred", metric]).astype({metric: float})
    if len(infinite := rows[rows[metric].abs() > LARGEST]):
        first = infinite["item_id"].iloc[0]
        raise LabError(f"{log.name}: {len(infinite):,} items have an infinite {metric} (first: {first}); mend the log")
    return rows


def _require_same_items(a: Log, b: Log) -> None:
    ours, theirs = (dict.fromkeys(log.rows["item_id"]) for log in (a, b))
    differences = []
    for log, others in ((a, theirs), (b, ours)):
        items = [item for item in dict.fromkeys(log.rows["item_id"]) if item not in others]
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

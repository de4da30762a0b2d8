"""A comparison of two runs for readers, as markdown, and for programs, as JSON."""

import math
from typing import Any

from pydantic_core import to_json

from hippo_core.results.formatting import NONE, missing, percent, probability, quantity, share, share_and_span, span, table
from hippo_core.results.statistics.interval import LEAST_WORLDS
from hippo_core.results.two_runs.comparison import BySuite, TwoRuns
from hippo_core.text import UNSHOWN, in_markdown

LARGE = 0.25  # share of the items above which a cluster is warned of


def suites_as_markdown(by_suite: BySuite, most: int = 20) -> str:
    """A page of each comparison, below what is to be known of all of them."""
    pages = [as_markdown(two, most) for two in by_suite.compared]
    lines = [f"{len(pages)} suites, each compared apart; no p is corrected for their number.\n"] if len(pages) > 1 else []
    for run, names in (("A", by_suite.only_a), ("B", by_suite.only_b)):
        lines += [f"Only {run} holds, and so not compared: {', '.join(names)}.\n"] if names else []
    return "\n".join([*lines, *pages])


def as_markdown(two: TwoRuns, most: int = 20) -> str:
    """The page: what differs between the runs, the difference with its tests, and at most so many discordant items a side."""
    result = two.result
    summary = {
        "A − B": share(result.difference, result.low, result.high, sign=True),
        "95% interval": span(result.low, result.high, sign=True),
        "clusters": f"{result.n_worlds:,}",
        "p, whole clusters permuted": probability(result.p_permutation),
        "McNemar's exact p": probability(result.p_mcnemar),
        "mid-p": probability(result.p_mid),
        "A alone better": f"{result.only_a:,}",
        "B alone better": f"{result.only_b:,}",
        "harmed": share_and_span(result.harmed, result.harmed_low, result.harmed_high),
    }
    differs = [(name, *values) for name, values in two.differs.items()]
    parts = [
        in_markdown(f"# {two.a.name} (A) against {two.b.name} (B)" + (f": {two.suite}" if two.suite else "")),
        table(("", "A", "B"), differs) if differs else "The runs say the same of themselves.",
        f"## {in_markdown(two.metric)} of {result.n:,} items: A {share(result.mean_a)}, B {share(result.mean_b)}",
        table(tuple(summary), [tuple(summary.values())]),
        in_markdown(_remarks(two)),
    ]
    costs = [(name, quantity(a), quantity(b), quantity(a / b) if b else NONE) for name, (a, b) in two.costs.items() if not missing(a)]
    if costs:
        parts += ["## What an item cost", table(("mean", "A", "B", "A / B"), costs)]
    for run in ("a", "b"):
        items = two.discordant[two.discordant["better"] == run]
        if len(items):
            rows = items.head(most)[["item_id", "question", "answer", "pred_a", "pred_b"]].itertuples(index=False, name=None)
            shown = "" if len(items) <= most else f", {most} of them"
            parts += [f"## {run.upper()} alone better: {len(items):,}{shown}", table(("item", "question", "expected", "A", "B"), [*rows])]
    return "\n\n".join(parts) + "\n"


def _remarks(two: TwoRuns) -> str:
    result, direction = two.result, "higher" if two.higher_is_better else "lower"
    lead = result.difference if two.higher_is_better else -result.difference
    better = "A has the better mean" if lead > 0 else "B has the better mean" if lead < 0 else "neither mean is better"
    remarks = [
        f"{two.metric}: {direction} is better; {better}.",
        "Harmed: the share of items that B alone does better, with its 95% interval.",
    ]
    if two.largest[1] > LARGE:
        name, part = two.largest
        remarks.append(
            f"Warning: the cluster {name} holds {percent(part)} of the items, more than a quarter: "
            "interval and p rest on it more than they should on any."
        )
    if not two.a.clustered:
        remarks.append(
            "Each item counts as independent of the others; where they are not (questions about one text), name what they share: --cluster."
        )
    if result.n_worlds < LEAST_WORLDS:
        remarks.append(f"No interval: {result.n_worlds} clusters are fewer than {LEAST_WORLDS}.")
    if math.isnan(result.p_mcnemar):
        remarks.append("McNemar's test is for scores of 0 and 1 alone.")
    if result.n_unscored:
        of_each = " and ".join(f"{run} to {count:,}" for run, count in zip("AB", two.unscored, strict=True) if count)
        remarks.append(f"{result.n_unscored:,} items left out: {of_each} gives no {two.metric}.")
    remarks += [f"{run}: {note}" for run, log in (("A", two.a), ("B", two.b)) for note in log.notes]
    if 0 < result.n_needed < math.inf:
        remarks.append(f"To see such a difference at .05 with a power of .8 takes about {quantity(result.n_needed)} items.")
    return " ".join(remarks)


def suites_as_json(by_suite: BySuite) -> str:
    """One comparison as `as_json` writes it; of several suites a list of these."""
    if len(by_suite.compared) == 1:
        return as_json(by_suite.compared[0])
    suites = [_content(two) for two in by_suite.compared]
    return _written({"schema_version": 1, "suites": suites, "only_a": by_suite.only_a, "only_b": by_suite.only_b})


def as_json(two: TwoRuns) -> str:
    """All of it: numbers that are not known are null, and every discordant item is there."""
    return _written(_content(two))


def _written(content: dict[str, Any]) -> str:
    """JSON in which numbers that are not known are null and nothing steers the terminal that it is printed on; what would is escaped."""
    text = to_json(content, indent=2, inf_nan_mode="null").decode() + "\n"
    return UNSHOWN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _content(two: TwoRuns) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "a": two.a.name,
        "b": two.b.name,
        "kind": two.a.kind,
        "suite": two.suite,
        "metric": two.metric,
        "higher_is_better": two.higher_is_better,
        "largest_cluster": {"name": two.largest[0], "share": two.largest[1]},
        "clustered": two.a.clustered,
        "comparison": two.result,
        "differs": two.differs,
        "costs": two.costs,
        "unscored": two.unscored,
        "notes": {"a": two.a.notes, "b": two.b.notes},
        "discordant": two.discordant.to_dict("records"),
    }

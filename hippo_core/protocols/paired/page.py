"""A comparison as a page in Markdown."""

import math
from collections.abc import Sequence

from hippo_core.protocols.paired.agents.tasks import NOT_JUDGED
from hippo_core.protocols.paired.comparison import Cost, ItemGroup, Paired
from hippo_core.protocols.paired.items import ITEMS, Shell
from hippo_core.protocols.paired.run_files import PairedRun
from hippo_core.results.formatting import NONE, probability, quantity, share, share_and_span, span, table
from hippo_core.results.statistics.interval import LEAST_WORLDS
from hippo_core.results.statistics.paired import Comparison
from hippo_core.text import in_markdown


def markdown(pairs: Sequence[Paired], most: int = 20) -> str:
    """All comparisons of a candidate, one below the other; at most so many items on which the two differ, of each."""
    return "\n\n".join(_comparison(pair, most) for pair in pairs) + "\n"


def summary(run: PairedRun) -> str:
    """Each condition's success and what it is made of, as two tables."""
    from hippo_core.protocols.paired.summary import by_condition, scores_by_condition

    tables = [by_condition(run.rows), scores_by_condition(run.rows)]
    shown = [frame for frame in tables if len(frame.columns) > 1]  # tasks have no scores
    parts = [table(tuple(frame.columns), [tuple(line) for line in frame.itertuples(index=False, name=None)]) for frame in shown]
    broken = run.rows[run.rows["answer"].astype(str).str.startswith(NOT_JUDGED)]
    if len(broken):
        items = ", ".join(sorted(set(broken["item"])))
        parts.append(f"{len(broken)} of {len(run.rows)} answers could not be judged, by what an agent did or left: {items}.")
    # a task has no answer, and its error is its verdict
    asked = run.rows[~run.rows["type"].isin([name for name, made in ITEMS.items() if issubclass(made, Shell)])]
    failed = asked["error"].astype(str)[lambda error: error.ne("")]
    if len(failed):
        often = in_markdown(failed.value_counts().index[0])
        parts.append(f"{len(failed)} of {len(run.rows)} answers are errors and count as failures; most often: {often}")
    return "\n\n".join(parts)


def _comparison(pair: Paired, most: int) -> str:
    result, manifest = pair.success, pair.baseline.run.about["suite"]
    names = [pair.baseline.name, pair.candidate.name]
    baseline, candidate = map(in_markdown, names)
    suite = in_markdown(
        f"Suite {manifest['name']} {manifest['version']} ({manifest['label_status']}); runs "
        + ", ".join(dict.fromkeys(condition.run.about["run_group_id"] for condition in (pair.baseline, pair.candidate)))
    )
    remarks = [f"Harmed: the share of items that {baseline} does better."]
    if result.n_worlds < LEAST_WORLDS:
        remarks.append(f"No interval: fewer than {LEAST_WORLDS} worlds.")
    if result.n_unscored:
        remarks.append(f"{result.n_unscored} items are left out, at which one side can neither succeed nor fail.")
    parts = [
        f"## {candidate} against {baseline}",
        suite + ".",
        table(
            ("", "n", *names, "difference", "95% interval", "p, worlds permuted", "harmed"),
            [_line("success", result), *(_line(name, comparison) for name, comparison in pair.metrics.items())],
        ),
        f"McNemar's exact p {probability(pair.p_mcnemar)}, mid-p {probability(pair.p_mid)}: {candidate} alone succeeds at {pair.gained} "
        f"items, {baseline} alone at {pair.lost}. It takes items for independent; the permutation and the interval take worlds, of which "
        f"there are {result.n_worlds}. {' '.join(remarks)}",
        "### What it cost",
        table(("", *names), _costs(pair.costs)),
        "Tokens a success: of the answers that state tokens. An item costs, where both sides state it:",
        table(
            ("", "n", *names, "difference", "95% interval", "p, worlds permuted"),
            [_cost_line(name, comparison) for name, comparison in pair.cost_metrics.items()],
        ),
        "### By group",
        table(
            ("group", "n", *names, "difference", "p", "p after Holm", "harmed"),
            group_lines(pair.groups),
        ),
        *_discordant(pair, most),
    ]
    if pair.differs:
        lines = [(name, str(a), str(b)) for name, (a, b) in pair.differs.items()]
        parts.insert(2, "The runs differ in more than the condition:\n\n" + table(("", *names), lines))
    return "\n\n".join(parts)


def _line(name: str, result: Comparison) -> tuple[str, ...]:
    shown = (share(result.mean_b), share(result.mean_a), share(result.difference, sign=True), span(result.low, result.high, sign=True))
    harmed = share_and_span(result.harmed, result.harmed_low, result.harmed_high) if name == "success" else NONE
    return (name, str(result.n), *shown, probability(result.p_permutation), harmed)


def _cost_line(name: str, result: Comparison) -> tuple[str, ...]:
    difference, low, high = (
        ("+" if value > 0 else "") + quantity(value).replace("-", "\u2212") for value in (result.difference, result.low, result.high)
    )
    interval = NONE if NONE in (low, high) else f"{low} to {high}"
    return (name, str(result.n), quantity(result.mean_b), quantity(result.mean_a), difference, interval, probability(result.p_permutation))


def group_lines(groups: Sequence[ItemGroup]) -> list[tuple[object, ...]]:
    """A line a group: items, success of the baseline and of the candidate, their difference, p, p after Holm, the share harmed."""
    lines: list[tuple[object, ...]] = []
    for group in groups:
        result = group.result
        shown = (share(result.mean_b), share(result.mean_a), share(result.difference, sign=True))
        tests = (probability(result.p_permutation), probability(group.p_holm))
        lines.append((group.name, result.n, *shown, *tests, share_and_span(result.harmed, result.harmed_low, result.harmed_high)))
    return lines


def _costs(costs: tuple[Cost, Cost]) -> list[tuple[str, ...]]:
    names = ("tokens, in and out", "of these cached", "answers that state no tokens", "seconds", "successes", "tokens a success")
    of_each = []
    for cost in costs:
        values = (cost.tokens, cost.cached, cost.unstated, cost.seconds, cost.successes)
        of_each.append([*map(quantity, values), quantity(cost.per_success) if math.isfinite(cost.per_success) else "no success"])
    return list(zip(names, *of_each, strict=True))


def _discordant(pair: Paired, most: int) -> list[str]:
    parts = []
    for gained, name in ((True, pair.candidate.name), (False, pair.baseline.name)):
        lines = pair.discordant[pair.discordant["gained"] == gained]
        if len(lines):
            shown = "" if len(lines) <= most else f", {most} of them"
            rows = [(row["item"], row["question"], row["answer_b"], row["answer"]) for row in lines.head(most).to_dict("records")]
            heads = ("item", "question", pair.baseline.name, pair.candidate.name)
            parts += [f"### {in_markdown(name)} alone: {len(lines)}{shown}", table(heads, rows)]
    return parts

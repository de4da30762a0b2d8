"""A comparison of two runs for readers, as markdown, and for programs, as JSON."""

import json
import math
from dataclasses import asdict
from typing import Any

from hippo_core.results.formatting import NONE, missing, probability, quantity, share, span
from hippo_core.results.statistics.interval import LEAST_WORLDS
from hippo_core.results.two_runs.comparison import TwoRuns

CUT = 120  # letters of a text in a table


def as_markdown(two: TwoRuns, most: int = 20) -> str:
    """The page: what differs between the runs, the difference with its interval and tests, and at most so many discordant items a side."""
    result, of = two.result, f"{two.metric} of {two.result.n:,} items"
    head = [
        f"# {two.a.name} (A) against {two.b.name} (B)",
        _table(("", "A", "B"), [(name, *values) for name, values in two.differs.items()])
        if two.differs
        else "The runs say the same of themselves.",
        f"## {of}: A {share(result.mean_a)}, B {share(result.mean_b)}",
        _table(
            ("A − B", "95% interval", "clusters", "p, whole clusters permuted", "McNemar's exact p", "A alone better", "B alone better"),
            [
                (
                    share(result.difference, result.low, result.high, sign=True),
                    span(result.low, result.high, sign=True),
                    f"{result.n_worlds:,}",
                    probability(result.p_permutation),
                    probability(result.p_mcnemar),
                    f"{result.only_a:,}",
                    f"{result.only_b:,}",
                )
            ],
        ),
        _remarks(two),
    ]
    costs = [(name, quantity(a), quantity(b), quantity(a / b) if b else NONE) for name, (a, b) in two.costs.items() if not missing(a)]
    parts = [*head, *(["## What an item cost", _table(("mean", "A", "B", "A / B"), costs)] if costs else []), *_discordant(two, most)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _remarks(two: TwoRuns) -> str:
    result, remarks = two.result, []
    if not two.a.clustered:
        remarks.append(
            "Each item counts as independent of the others; where they are not (questions about one text), name what they share: --cluster."
        )
    if result.n_worlds < LEAST_WORLDS:
        remarks.append(f"No interval: {result.n_worlds} clusters are fewer than {LEAST_WORLDS}.")
    if math.isnan(result.p_mcnemar):
        remarks.append("McNemar's test is for scores of 0 and 1 alone.")
    if result.n_unscored:
        remarks.append(f"{result.n_unscored:,} items left out, which one side has no score for.")
    if 0 < result.n_needed < math.inf:
        remarks.append(f"To see such a difference at .05 with a power of .8 takes about {quantity(result.n_needed)} items.")
    return " ".join(remarks)


def _discordant(two: TwoRuns, most: int) -> list[str]:
    parts = []
    for side, name in (("a", "A"), ("b", "B")):
        items = two.discordant[two.discordant["better"] == side]
        if len(items):
            shown = "" if len(items) <= most else f", {most} of them"
            rows = [
                (one["item_id"], one["question"], one["answer"], one["pred_a"], one["pred_b"])
                for one in items.head(most).to_dict("records")
            ]
            parts += [f"## {name} alone better: {len(items):,}{shown}", _table(("item", "question", "expected", "A", "B"), rows)]
    return parts


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: object) -> str:
    words = " ".join(str("" if missing(text) else text).replace("|", "\\|").split())
    return words if len(words) <= CUT else f"{words[: CUT // 2 - 2]} ... {words[2 - CUT // 2 :]}"


def as_json(two: TwoRuns) -> str:
    """All of it: numbers that are not known are null, and every discordant item is there."""
    whole = {
        "schema_version": 1,
        "a": two.a.name,
        "b": two.b.name,
        "kind": two.a.kind,
        "metric": two.metric,
        "clustered": two.a.clustered,
        "comparison": asdict(two.result),
        "differs": {name: list(values) for name, values in two.differs.items()},
        "costs": {name: list(values) for name, values in two.costs.items()},
        "discordant": two.discordant.to_dict("records"),
    }
    return json.dumps(_known(whole), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_known(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

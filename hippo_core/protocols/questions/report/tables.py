"""The tables of a setting, as rows of ready words and links: conditions, policies, retrieval, rungs and kinds, expected ranges."""

from typing import Any

from hippo_core.protocols.questions.figures.sweep_plot import MEASURES
from hippo_core.protocols.questions.report import warnings
from hippo_core.protocols.questions.report.pages import Links
from hippo_core.protocols.questions.sweeps import Sweep, on_axis
from hippo_core.results import summaries
from hippo_core.results.conditions import ignores_window, ordered
from hippo_core.results.figures.palette import look
from hippo_core.results.formatting import NONE, count, quantity, share, span
from hippo_core.results.frames import Frame, Row
from hippo_core.results.policies import ABSTAINED, POLICIES
from hippo_core.results.report.svg import dot_and_bar

UNIT = (0.0, 1.0)
POLICIES_NOTE = (
    "Calibrated: “unknown” where its margin or the evidence passes thresholds that the validation questions of each condition choose, all "
    "by the same rule. May abstain: where the model says it. May not: nowhere. The scores above follow each preset's own policy."
)
SHARES_FOUND = ["recall_2", "recall_5", "recall_20", "all_gold_5", "answer_recall_1", "answer_recall_5"]


def primary(rows: Frame) -> str:
    """What `score` is in these rows, found from the data: EM norm, EM raw, success (EM norm where an item has no path), or a measure that
    the suite brings itself."""
    scored = rows[rows["score"].notna()]
    measures = {"EM norm": scored["em_norm"], "EM raw": scored["em_raw"], "success": scored["success"].fillna(scored["em_norm"])}
    same = [name for name, values in measures.items() if (scored["score"] == values).all()]
    paths = ["success"] if scored["success"].notna().any() and "success" in same else []
    return next(iter([*paths, *same]), "the suite's own measure")


def conditions(rows: Frame, links: Links) -> list[dict[str, Any]]:
    """For each regime the table of conditions: n, worlds, score with interval, other scores, recall, tokens, latency, and who
    computed the answer where the rows say so (`answered_by`)."""
    both = summaries.in_both_regimes(rows)
    table = summaries.estimate(both, ["condition", "regime"]).set_index(["condition", "regime"])
    names = ["em_raw", "em_norm", "f1", "success", "recall_1", "recall_5", "prompt_tokens", "generated_tokens", "latency_ms"]
    names += [name for name in ("computed_tokens", *summaries.ANSWERED_BY) if name in both]
    means = both.groupby(["condition", "regime"])[names].mean()
    once = both.groupby(["condition", "regime"])["shared"].max()
    replaced = _replaced(both)
    tables = []
    for regime in summaries.regimes_of(both):
        here = [name for name in ordered(both["condition"]) if (name, regime) in table.index]
        lines = [
            _condition(name, regime, table.loc[name, regime], means.loc[name, regime], bool(once[name, regime]), links)
            | {"replaced": name in replaced}
            for name in here
        ]
        notes = {note: any(line[note] for line in lines) for note in ("shared", "replaced")}
        said = any(line["answered_by"] != NONE for line in lines)  # not of rows that were written before they had it
        tables.append({"regime": regime, "lines": lines, "answered_by": said, **notes})
    return tables


def policies(rows: Frame) -> dict[str, Any] | None:
    """The scores of the same answers under three policies of saying "unknown", and how often it is said: a line a condition and regime.
    None where no row says what would have been answered."""
    if rows["score_never"].isna().all():
        return None
    keys = ["condition", "regime"]
    scores = {name: summaries.estimate(rows, keys, f"score_{name}").set_index(keys) for name in POLICIES}
    means = rows.groupby(keys)[[*ABSTAINED]].mean()
    said = rows["calibrated_on"] if "calibrated_on" in rows else rows["condition"].map(lambda _: "")
    reasons = said.groupby([rows[key] for key in keys]).agg(lambda one: "; ".join(sorted(set(one))))
    lines = [
        {"name": look(name).label, "look": look(name), "regime": _both(rows, name, regime), "on": reasons[name, regime]}
        | {policy: _at(table.loc[name, regime] if (name, regime) in table.index else None) for policy, table in scores.items()}
        | {column: share(means.loc[(name, regime), column]) for column in ABSTAINED}
        for name in ordered(rows["condition"])
        for regime in summaries.regimes_of(rows[rows["condition"] == name])
    ]
    return {"lines": lines, "note": POLICIES_NOTE}


def _replaced(rows: Frame) -> set[str]:
    """The conditions that rank facts and then show the model something else, or nothing: controls with a ranking."""
    if "control" not in rows:
        return set()
    return set(rows.loc[(rows["control"] != "") & rows["recall_1"].notna(), "condition"])


def _condition(name: str, regime: str, row: Row, means: Row, shared: bool, links: Links) -> dict[str, Any]:
    description = f"{look(name).label} {share(row['mean'])}, 95% interval {span(row['low'], row['high'])}"
    return {
        "name": look(name).label,
        "look": look(name),
        "shared": shared,
        "link": links.items(name, regime),
        "n": count(row["n"]),
        "worlds": count(row["n_worlds"]),
        "em": share(row["mean"], row["low"], row["high"]),
        "interval": span(row["low"], row["high"]),
        "value": row["mean"],
        "bar": dot_and_bar(row["mean"], row["low"], row["high"], UNIT, look(name).colour, description, guide=row["chance"]),
        "chance": share(row["chance"]),
        **{column: share(means[column]) for column in ("em_raw", "em_norm", "f1", "success", "recall_1", "recall_5")},
        "tokens": quantity(means["prompt_tokens"]),
        "said": quantity(means["generated_tokens"]),
        "computed": quantity(means.get("computed_tokens")),
        "latency": quantity(means["latency_ms"]),
        "answered_by": summaries.answered_by(means),
    }


def retrieval(rows: Frame) -> dict[str, Any] | None:
    """What each ranking is worth and what it costs: gold facts among the first, answers that stand in them, and for all of a question the
    tokens computed and the milliseconds. None where nothing was ranked, and of rows that were written without these columns."""
    if "recall_20" not in rows or rows["recall_20"].isna().all():
        return None
    ranked = rows[rows["recall_20"].notna()]
    first = summaries.estimate(ranked, ["condition", "regime"], "recall_1").set_index(["condition", "regime"])
    means = ranked.groupby(["condition", "regime"])[[*SHARES_FOUND, "n_shown", "computed_tokens", "retrieval_ms", "latency_ms"]].mean()
    lines = [
        _found(name, regime, first.loc[(name, regime)], means.loc[(name, regime)])
        for name in ordered(ranked["condition"])
        for regime in summaries.regimes_of(ranked[ranked["condition"] == name])
    ]
    replaced = {look(name).label for name in _replaced(ranked)}
    lines = [line | {"replaced": line["name"] in replaced} for line in lines]
    return {"lines": lines, "replaced": bool(replaced)}


def _found(name: str, regime: str, first: Row, means: Row) -> dict[str, Any]:
    return {
        "name": look(name).label,
        "look": look(name),
        "regime": regime,
        "n": count(first["n"]),
        "recall_1": share(first["mean"], first["low"], first["high"]),
        "interval": span(first["low"], first["high"]),
        **{column: share(means[column]) for column in SHARES_FOUND},
        "shown": quantity(means["n_shown"]),
        "computed": quantity(means["computed_tokens"]),
        "ms": quantity(means["retrieval_ms"]),
        "ms_whole": quantity(means["retrieval_ms"] + means["latency_ms"]),
    }


def groups(rows: Frame, column: str, links: Links) -> dict[str, Any] | None:
    """Score by the values of a column (rung, kind): a line a condition and regime. None where the column has fewer than two values."""
    values = [value for value in summaries.order_of(rows, column) if value != ""]
    if len(values) < 2:
        return None
    table = summaries.estimate(rows, ["condition", "regime", column]).set_index(["condition", "regime", column])
    lines = []
    for name in ordered(rows["condition"]):
        for regime in summaries.regimes_of(rows[rows["condition"] == name]):
            label = _both(rows, name, regime)
            cells = [_group(table, name, regime, column, value, links) for value in values]
            lines.append({"name": look(name).label, "look": look(name), "regime": label, "cells": cells})
    return {"column": column, "values": [str(value) for value in values], "lines": lines, "sizes": _sizes(table)}


def _both(rows: Frame, name: str, regime: str) -> str:
    once = regime == "delayed" and ignores_window(name)
    return "both" if once and (rows["regime"] == "immediate").any() else regime


def _group(table: Frame, name: str, regime: str, column: str, value: Any, links: Links) -> dict[str, str]:
    if (name, regime, value) not in table.index:
        return {"em": NONE, "interval": "", "link": ""}
    row = table.loc[(name, regime, value)]
    link = links.items(name, regime, **{column: value})
    return {"em": share(row["mean"], row["low"], row["high"]), "interval": span(row["low"], row["high"]), "link": link}


def _sizes(table: Frame) -> str:
    low, high, worlds = table["n"].min(), table["n"].max(), table["n_worlds"].max()
    return f"{low:.0f}{'' if low == high else f' to {high:.0f}'} items in up to {worlds:.0f} worlds each"


def expected_ranges(rows: Frame, validation: Frame) -> list[dict[str, Any]]:
    """Each condition's test score beside the range that its validation cell makes us expect."""
    lines = []
    for condition, regime, mean, (low, high) in warnings.expected(rows, validation):
        verdict = "not known" if low != low else "inside" if low - 1e-9 <= mean <= high + 1e-9 else "outside"
        lines.append({"name": look(condition).label, "regime": regime, "em": share(mean), "range": span(low, high), "verdict": verdict})
    return lines


def sweep_tables(sweep: Sweep) -> list[dict[str, Any]]:
    """What a sweep's figure shows, a table a measure: a line for each panel and condition, a cell for each value of the axis."""
    values = sorted(set(sweep.rows["x"]))
    tables = []
    for measure, words in MEASURES.items():
        table = summaries.estimate(sweep.rows, ["panel", "line", "x"], measure)
        cells = {(row["panel"], row["line"], row["x"]): row for _, row in table.iterrows()}
        lines = [
            {
                "panel": sweep.title(panel),
                "name": look(name).label,
                "look": look(name),
                "cells": [_at(cells.get((panel, name, x))) for x in values],
            }
            for panel in sweep.panels
            for name in ordered(table.loc[table["panel"] == panel, "line"])
        ]
        if lines:
            tables.append({"measure": words, "axis": sweep.axis, "values": [on_axis(x) for x in values], "lines": lines})
    return tables


def _at(row: Row | None) -> dict[str, str]:
    if row is None:
        return {"mean": NONE, "interval": ""}
    return {"mean": share(row["mean"], row["low"], row["high"]), "interval": span(row["low"], row["high"])}

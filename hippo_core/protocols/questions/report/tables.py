"""The tables of a setting, as rows of ready words and links: conditions, policies, retrieval, rungs and kinds, expected ranges,
paired comparisons, held-out words."""

from collections.abc import Sequence
from typing import Any

from hippo_core.protocols.questions.figures.plots import MEASURES
from hippo_core.protocols.questions.report import warnings
from hippo_core.protocols.questions.report.runs import Links
from hippo_core.protocols.questions.sweeps import Sweep, on_axis
from hippo_core.results import summaries
from hippo_core.results.conditions import base, ignores_window, is_control, ordered
from hippo_core.results.figures.palette import INK, QUIET, style_of
from hippo_core.results.formatting import NONE, count, probability, quantity, share, share_and_span, span
from hippo_core.results.frames import Frame, Row
from hippo_core.results.policies import ABSTAINED, POLICIES
from hippo_core.results.report.pages import dot_and_bar
from hippo_core.results.report.verdicts import needed
from hippo_core.results.statistics.paired import Comparison
from hippo_core.suites import suite_constants

CONDITION_KEY = ["condition", "regime"]
POLICIES_NOTE = (
    "Calibrated: “unknown” where its margin or the evidence passes thresholds that the validation questions of each condition choose, all "
    "by the same rule. May abstain: where the model says it. May not: nowhere. The scores above follow each preset's own policy."
)
SCORES = ["em_raw", "em_norm", "f1", "success", "recall_1", "recall_5"]
RECALL_SHARES = ["recall_2", "recall_5", "recall_20", "all_gold_5", "answer_recall_1", "answer_recall_5"]
FURTHER = {"lost_per_10": "lost / 10 facts", "localisation_error": "steps off"}  # columns of few suites, and their heads
LEAST_ITEMS, LEAST_WORLDS = 20, 2  # of a group, for a number to be shown
SLICE_MEASURES = {"score": "answers right", "recall_1": "recall@1"}


def condition_keys(rows: Frame) -> list[tuple[str, str]]:
    """Every condition with each of its regimes, in the order of all tables."""
    return [(name, regime) for name in ordered(rows["condition"]) for regime in summaries.regimes_of(rows[rows["condition"] == name])]


def estimates(rows: Frame, by: Sequence[str], value: str = "score") -> dict[tuple[Any, ...], Row]:
    """The estimate of each group, by what its rows share."""
    return {tuple(row[name] for name in by): row for _, row in summaries.estimate(rows, by, value).iterrows()}


def estimated(row: Row | None) -> dict[str, str]:
    """An estimate as two cells; a dash where there is none."""
    if row is None:
        return {"mean": NONE, "interval": ""}
    return {"mean": share(row["mean"], row["low"], row["high"]), "interval": span(row["low"], row["high"])}


def named(condition: str, regime: str) -> dict[str, Any]:
    """How a line of a table begins."""
    return {"name": style_of(condition).label, "look": style_of(condition), "regime": regime}


def primary(rows: Frame) -> str:
    """What `score` is in these rows, found from the data: EM norm, EM raw, success (EM norm where an item has no path), or a measure that
    the suite brings itself. Where both EMs agree with it, it is the one by which the suite is scored."""
    scored = rows[rows["score"].notna()]
    measures = {"EM norm": scored["em_norm"], "EM raw": scored["em_raw"], "success": scored["success"].fillna(scored["em_norm"])}
    same = [name for name, values in measures.items() if (scored["score"] == values).all()]
    if "success" in same and scored["success"].notna().any():
        return "success"
    if "EM raw" in same and {suite_constants(suite).get("primary") for suite in rows["suite"].unique()} == {"em_raw"}:
        return "EM raw"
    return same[0] if same else "the suite's own measure"


def conditions(rows: Frame, links: Links) -> list[dict[str, Any]]:
    """For each regime the table of conditions: n, worlds, score with interval, other scores, recall, tokens, latency, and who
    computed the answer where the rows say so (`answered_by`)."""
    both = summaries.in_both_regimes(rows)
    scores, groups, replaced = estimates(both, CONDITION_KEY), both.groupby(CONDITION_KEY), _replaced(both)
    names = [*SCORES, "prompt_tokens", "generated_tokens", "latency_ms"]
    names += [name for name in ("computed_tokens", *summaries.ANSWERED_BY, *FURTHER) if name in both]
    means, once = groups[names].mean(), groups["shared"].max()
    tables = []
    for regime in summaries.regimes_of(both):
        lines = [
            _condition(name, regime, scores[name, regime], means.loc[name, regime], links)
            | {"shared": bool(once[name, regime]), "replaced": name in replaced}
            for name in ordered(both["condition"])
            if (name, regime) in scores
        ]
        notes = {note: any(line[note] for line in lines) for note in ("shared", "replaced")}
        answered_by = any(line["answered_by"] != NONE for line in lines)  # not of rows that were written before they had it
        further = [(name, head) for name, head in FURTHER.items() if any(line[name] != NONE for line in lines)]
        tables.append({"regime": regime, "lines": lines, "answered_by": answered_by, "further": further, **notes})
    return tables


def _replaced(rows: Frame) -> set[str]:
    """The conditions that rank facts and then show the model something else, or nothing: controls with a ranking."""
    return set(rows.loc[(rows["control"] != "") & rows["recall_1"].notna(), "condition"]) if "control" in rows else set()


def _condition(name: str, regime: str, row: Row, means: Row, links: Links) -> dict[str, Any]:
    words, style = estimated(row), style_of(name)
    description = f"{style.label} {share(row['mean'])}, 95% interval {words['interval']}"
    return {
        "name": style.label,
        "look": style,
        "link": links.items(name, regime),
        "n": count(row["n"]),
        "worlds": count(row["n_worlds"]),
        "em": words["mean"],
        "interval": words["interval"],
        "value": row["mean"],
        "bar": dot_and_bar(row["mean"], row["low"], row["high"], (0.0, 1.0), style.colour, description, guide=row["chance"]),
        **{column: share(means[column]) for column in SCORES},
        "tokens": quantity(means["prompt_tokens"]),
        "said": quantity(means["generated_tokens"]),
        "computed": quantity(means.get("computed_tokens")),
        "latency": quantity(means["latency_ms"]),
        "lost_per_10": share(means.get("lost_per_10"), sign=True),
        "localisation_error": quantity(means.get("localisation_error")),
        "answered_by": summaries.answered_by(means),
    }


def policies(rows: Frame) -> dict[str, Any] | None:
    """The scores of the same answers under three policies of saying "unknown", and how often it is said: a line a condition and regime.
    None where no row says what would have been answered."""
    if rows["score_never"].isna().all():
        return None
    scores = {name: estimates(rows, CONDITION_KEY, f"score_{name}") for name in POLICIES}
    means = rows.groupby(CONDITION_KEY)[[*ABSTAINED]].mean()
    calibrations = rows["calibrated_on"] if "calibrated_on" in rows else rows["condition"].map(lambda _: "")
    reasons = calibrations.groupby([rows[key] for key in CONDITION_KEY]).agg(lambda texts: "; ".join(sorted(set(texts))))
    lines = [
        {**named(name, _both(rows, name, regime)), "on": reasons[name, regime]}
        | {policy: estimated(table.get((name, regime))) for policy, table in scores.items()}
        | {column: share(means.loc[(name, regime), column]) for column in ABSTAINED}
        for name, regime in condition_keys(rows)
    ]
    return {"lines": lines, "note": POLICIES_NOTE}


def retrieval(rows: Frame) -> dict[str, Any] | None:
    """What each ranking is worth and what it costs: gold facts among the first, answers that stand in them, and for all of a question the
    tokens computed and the milliseconds. None where nothing was ranked, and of rows that were written without these columns."""
    if "recall_20" not in rows or rows["recall_20"].isna().all():
        return None
    ranked = rows[rows["recall_20"].notna()]
    first, replaced = estimates(ranked, CONDITION_KEY, "recall_1"), _replaced(ranked)
    means = ranked.groupby(CONDITION_KEY)[[*RECALL_SHARES, "n_shown", "computed_tokens", "retrieval_ms", "latency_ms"]].mean()
    lines = []
    for name, regime in condition_keys(ranked):
        row, mean = first[name, regime], means.loc[(name, regime)]
        first_hit = estimated(row)
        lines.append(
            {
                **named(name, regime),
                "n": count(row["n"]),
                "recall_1": first_hit["mean"],
                "interval": first_hit["interval"],
                **{column: share(mean[column]) for column in RECALL_SHARES},
                "shown": quantity(mean["n_shown"]),
                "computed": quantity(mean["computed_tokens"]),
                "ms": quantity(mean["retrieval_ms"]),
                "ms_whole": quantity(mean["retrieval_ms"] + mean["latency_ms"]),
                "replaced": name in replaced,
            }
        )
    return {"lines": lines, "replaced": bool(replaced)}


def groups(rows: Frame, column: str, links: Links) -> dict[str, Any] | None:
    """Score by the values of a column (rung, kind): a line a condition and regime. None where the column has fewer than two values."""
    values = [value for value in summaries.order_of(rows, column) if value != ""]
    scores = estimates(rows, [*CONDITION_KEY, column])
    if len(values) < 2 or not scores:
        return None

    def cell(name: str, regime: str, value: Any) -> dict[str, str]:
        row = scores.get((name, regime, value))
        return {**estimated(row), "link": "" if row is None else links.items(name, regime, **{column: value})}

    lines = [
        {**named(name, _both(rows, name, regime)), "cells": [cell(name, regime, value) for value in values]}
        for name, regime in condition_keys(rows)
    ]
    items, worlds = [row["n"] for row in scores.values()], max(row["n_worlds"] for row in scores.values())
    most = "" if min(items) == max(items) else f" to {max(items):.0f}"
    sizes = f"{min(items):.0f}{most} items in up to {worlds:.0f} worlds each"
    return {"column": column, "values": [str(value) for value in values], "lines": lines, "sizes": sizes}


def _both(rows: Frame, name: str, regime: str) -> str:
    once = regime == "delayed" and ignores_window(name)
    return "both" if once and (rows["regime"] == "immediate").any() else regime


def expected_ranges(rows: Frame, validation: Frame) -> list[dict[str, Any]]:
    """Each condition's test score beside the range that its validation cell makes us expect."""
    lines = []
    for condition, regime, mean, (low, high) in warnings.expected(rows, validation):
        verdict = "not known" if low != low else "inside" if low - 1e-9 <= mean <= high + 1e-9 else "outside"
        lines.append({"name": style_of(condition).label, "regime": regime, "em": share(mean), "range": span(low, high), "verdict": verdict})
    return lines


def sweep_tables(sweep: Sweep) -> list[dict[str, Any]]:
    """What a sweep's figure shows, a table a measure: a line for each panel and condition, a cell for each value of the axis."""
    values = sorted(set(sweep.rows["x"]))
    tables = []
    for measure, words in MEASURES.items():
        scores = estimates(sweep.rows, ["panel", "line", "x"], measure)
        lines = [
            {**named(name, ""), "panel": sweep.title(panel), "cells": [estimated(scores.get((panel, name, x))) for x in values]}
            for panel in sweep.panels
            for name in ordered(line for there, line, _ in scores if there == panel)
        ]
        if lines:
            tables.append({"measure": words, "axis": sweep.axis, "values": [on_axis(x) for x in values], "lines": lines})
    return tables


def comparisons(rows: Frame, validation: Frame, links: Links) -> list[dict[str, Any]]:
    """Each condition against span_short, the best rag and oracle, item by item: a block for each rival and regime."""
    rag, derived = summaries.best_rag(rows, validation)
    rag_note = "best rag on validation worlds" if derived else "best rag on these test rows"
    references = [("baselines/span_short", ""), (rag, rag_note), ("controls/oracle", "the gold facts")]
    blocks = []
    for regime in reversed(summaries.regimes_of(rows)):
        for rival, note in references:
            if rival and (lines := _against(rows, rival, regime, links)):
                blocks.append({"rival": style_of(rival).label, "note": note, "regime": regime, "lines": lines})
    return blocks


def _against(rows: Frame, rival: str, regime: str, links: Links) -> list[dict[str, Any]]:
    lines, b = [], (rival, links.regime(rival, regime))
    for name in ordered(rows["condition"]):
        a = name, links.regime(name, regime)
        measured = name != rival and regime in (a[1], b[1])  # else neither has rows of its own in this regime
        if measured and (result := summaries.pair(rows, a, b)):
            shown = numbers(result)
            alt = f"difference {share(result.difference, sign=True)}, 95% interval {shown['interval']}"
            colour = INK if result.p_permutation <= 0.05 else QUIET
            lines.append(
                {
                    "name": style_of(name).label,
                    "look": style_of(name),
                    **shown,
                    "value": result.difference,
                    "bar": dot_and_bar(result.difference, result.low, result.high, (-1.0, 1.0), colour, alt, guide=0.0),
                    "p_value": result.p_permutation,
                    "link_a": links.differing(a, b, "a"),
                    "link_b": links.differing(a, b, "b"),
                    "link": links.differing(a, b),
                }
            )
    return lines


def numbers(result: Comparison) -> dict[str, str]:
    """A paired comparison as it is written, here and in the dashboard."""
    return {
        "n": count(result.n),
        "worlds": count(result.n_worlds),
        "a": share(result.mean_a),
        "b": share(result.mean_b),
        "difference": share(result.difference, result.low, result.high, sign=True),
        "interval": span(result.low, result.high, sign=True),
        "p": probability(result.p_permutation),
        "p_mcnemar": probability(result.p_mcnemar),
        "p_mid": probability(result.p_mid),
        "only_a": count(result.only_a),
        "only_b": count(result.only_b),
        "harmed": share_and_span(result.harmed, result.harmed_low, result.harmed_high),
        "needed": needed(result.n_needed),
    }


def slices(rows: Frame) -> dict[str, Any] | None:
    """Answers right and recall@1 by group of questions: two lines a condition and regime. None where no question has held-out words, or
    there is neither a memory nor a rag."""
    rows = rows[rows["condition"].map(lambda name: _is_memory(name) or base(name).startswith("baselines/rag_"))]
    if not (rows["slices"] != "").any():
        return None
    held_out = _has(rows, "new_synonym") | _has(rows, "new_template")
    cues = summaries.order_of(rows[held_out], "rung")
    groups = {name: rows[chosen] for name, chosen in _groups(rows, cues).items() if chosen.any()}
    tables = {measure: [estimates(group, CONDITION_KEY, measure) for group in groups.values()] for measure in SLICE_MEASURES}
    lines = [
        {**named(*key), "measure": words, "cells": [_cell(group.get(key)) for group in tables[measure]]}
        for key in condition_keys(rows)
        for measure, words in SLICE_MEASURES.items()
        if any(key in group for group in tables[measure])
    ]
    return {"groups": list(groups), "lines": lines, "note": _note(cues), "of_memory": rows["condition"].map(_is_memory).any()}


def _is_memory(condition: str) -> bool:
    return condition.startswith("memory/") and not is_control(condition)


def _groups(rows: Frame, cues: list[str]) -> dict[str, Frame]:
    """Which rows belong to each group: four that share no question, by words; two more, by names."""
    synonym, form, name = (_has(rows, word) for word in ("new_synonym", "new_template", "new_name"))
    return {
        "neither": rows["rung"].isin(cues) & ~synonym & ~form,
        "held-out synonym": synonym & ~form,
        "held-out question form": form & ~synonym,
        "both": synonym & form,
        "unseen name": name,
        "seen names": ~name & name.any(),
    }


def _has(rows: Frame, word: str) -> Frame:
    return rows["slices"].str.split(";").map(lambda words: word in words)


def _cell(row: Row | None) -> dict[str, str]:
    few = row is None or row["n"] < LEAST_ITEMS or row["n_worlds"] < LEAST_WORLDS
    shown = {"mean": NONE, "interval": NONE} if few else estimated(row)
    return {**shown, "n": "0" if row is None else count(row["n"])}


def _note(cues: list[str]) -> str:
    named_cues = " or ".join(filter(None, cues))
    of_cues = f"The first groups hold questions with the cue {named_cues}; the groups by name hold all cues. " if named_cues else ""
    return f"{of_cues}A group of fewer than {LEAST_ITEMS} questions or {LEAST_WORLDS} worlds shows only its size."

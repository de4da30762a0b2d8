"""A verdict as a row of words, with its effect as a dot and bar; and the rows of verdicts on experiments' tables."""

import math
from collections.abc import Sequence
from typing import Any

from hippo_core.results.criteria import Verdict
from hippo_core.results.formatting import NONE, count, missing, probability, share, share_and_span, span
from hippo_core.results.report.pages import dot_and_bar

COLOURS = {"met": "#0b6b4f", "not met": "#a63603", "not shown": "#8a5a00", "not judged": "#6b7280"}
MARKS = {"met": "✓", "not met": "✗", "not shown": "?", "not judged": "–"}


def of_tables(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """The rows of verdicts on tables of experiments, those not judged last."""
    lines = [verdict_row(verdict) | {"sides": f"{verdict.a} against {verdict.b}" if verdict.b else verdict.a} for verdict in verdicts]
    return sorted(lines, key=lambda line: line["verdict"] == "not judged")


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """What a verdict says whatever its rows are about."""
    kind, domain, guide = _scale(verdict)
    signed = kind == "difference"
    value, interval = share(verdict.value, verdict.low, verdict.high, signed), span(verdict.low, verdict.high, signed)
    alt = f"{kind} {value}, {interval}"
    return {
        "id": verdict.id,
        "criterion": verdict.id,
        **{name: getattr(verdict, name) for name in ("question", "text", "reason", "family", "about", "verdict", "met_when")},
        "mark": MARKS[verdict.verdict],
        "kind": kind,
        "value": value,
        "interval": interval,
        "order": verdict.value,
        "domain": domain,
        "guide": guide,
        "ticks": verdict.target,
        "bar": dot_and_bar(verdict.value, verdict.low, verdict.high, domain, COLOURS[verdict.verdict], alt, guide, verdict.target),
        "n": count(verdict.n) if verdict.n else NONE,
        "worlds": count(verdict.n_worlds) if verdict.n_worlds else NONE,
        "p": probability(verdict.p if missing(verdict.p_holm) else verdict.p_holm),
        "corrected": not missing(verdict.p_holm),
        "p_mcnemar": probability(verdict.p_mcnemar),
        "p_mid": probability(verdict.p_mid),
        "harmed": share_and_span(verdict.harmed, verdict.harmed_low, verdict.harmed_high),
        "needed": needed(verdict.n_needed),
        "only_a": count(verdict.only_a),
        "only_b": count(verdict.only_b),
    }


def _scale(verdict: Verdict) -> tuple[str, tuple[float, float], float | None]:
    """What the value is, the axis it is drawn on, and its guide line (no effect)."""
    if verdict.rule == "at_most_chance_plus":
        return "above chance", (-1.0, 1.0), 0.0
    if missing(verdict.mean_a):
        return "mean", (0.0, 1.0 if missing(verdict.high) or verdict.high <= 1 else 2.0), None
    if math.isclose(verdict.value, verdict.mean_a - verdict.mean_b, abs_tol=1e-6):
        return "difference", (-1.0, 1.0), 0.0
    return "ratio", (0.0, 2.0), 1.0


def needed(n: float | None) -> str:
    """The items that a test would need, rounded up to two digits; a dash where there is no difference to see."""
    if n is None or n != n or n == float("inf"):
        return NONE
    step = 10 ** max(0, len(str(int(n))) - 2)
    return count(-(-int(n) // step) * step)

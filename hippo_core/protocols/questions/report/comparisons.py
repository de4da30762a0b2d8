"""The table of paired comparisons: each condition against span_short, the best rag and oracle, item by item."""

from typing import Any

from hippo_core.protocols.questions.report.pages import Links
from hippo_core.results import summaries
from hippo_core.results.conditions import ordered
from hippo_core.results.figures.palette import INK, QUIET, style_of
from hippo_core.results.formatting import count, probability, share, share_and_span, span
from hippo_core.results.frames import Frame
from hippo_core.results.report.pages import dot_and_bar
from hippo_core.results.report.verdicts import needed
from hippo_core.results.statistics.paired import Comparison


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

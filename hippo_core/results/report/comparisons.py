"""The table of paired comparisons: each condition against span_short, the best rag and oracle, item by item."""

from typing import Any

from hippo_core.results import summaries
from hippo_core.results.figures.palette import INK, QUIET, look, ordered
from hippo_core.results.formatting import NONE, count, probability, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.report.links import Links
from hippo_core.results.report.svg import dot_and_bar
from hippo_core.results.statistics import Comparison

EITHER_WAY = (-1.0, 1.0)


def comparisons(rows: Frame, validation: Frame, links: Links) -> list[dict[str, Any]]:
    """Each condition against span_short, the best rag and oracle, item by item: a block for each rival and regime."""
    rag, derived = summaries.best_rag(rows, validation)
    how = "best rag on validation worlds" if derived else "best rag on these test rows"
    rivals = [("baselines/span_short", ""), (rag, how), ("controls/oracle", "the gold facts")]
    found = []
    for regime in reversed(summaries.regimes_of(rows)):
        for rival, note in rivals:
            lines = _against(rows, rival, regime, links) if rival else []
            if lines:
                found.append({"rival": look(str(rival)).label, "note": note, "regime": regime, "lines": lines})
    return found


def _against(rows: Frame, rival: str, regime: str, links: Links) -> list[dict[str, Any]]:
    lines = []
    for name in ordered(rows["condition"]):
        a, b = (name, links.regime(name, regime)), (rival, links.regime(rival, regime))
        if name == rival or regime not in (a[1], b[1]):  # neither has rows of its own in this regime
            continue
        found = summaries.pair(rows, a, b)
        if found is not None:
            lines.append(_comparison(a, b, found, links))
    return lines


def _comparison(a: tuple[str, str], b: tuple[str, str], found: Comparison, links: Links) -> dict[str, Any]:
    said = f"difference {share(found.difference, sign=True)}, 95% interval {span(found.low, found.high, sign=True)}"
    return {
        "name": look(a[0]).label,
        "look": look(a[0]),
        "n": count(found.n),
        "worlds": count(found.n_worlds),
        "a": share(found.mean_a),
        "b": share(found.mean_b),
        "value": found.difference,
        "difference": share(found.difference, found.low, found.high, sign=True),
        "interval": span(found.low, found.high, sign=True),
        "bar": dot_and_bar(
            found.difference, found.low, found.high, EITHER_WAY, INK if found.p_permutation <= 0.05 else QUIET, said, guide=0.0
        ),
        "p": probability(found.p_permutation),
        "p_value": found.p_permutation,
        "p_mcnemar": probability(found.p_mcnemar),
        "only_a": count(found.only_a),
        "only_b": count(found.only_b),
        "needed": needed(found.n_needed),
        "link_a": links.differing(a, b, "a"),
        "link_b": links.differing(a, b, "b"),
        "link": links.differing(a, b),
    }


def needed(n: float | None) -> str:
    """The items that a test would need, rounded up to two digits; a dash where there is no difference to see."""
    if n is None or n != n or n == float("inf"):
        return NONE
    step = 10 ** max(0, len(str(int(n))) - 2)
    return count(-(-int(n) // step) * step)

"""How often a claim of params/criteria/claims.yaml is met that is not true, by each part of its rule.

    python benchmarks/statistics/claims.py [--samples 4000]        (some three minutes of CPU)

Made-up answers: items of a world are of like difficulty, and each condition is by chance better or worse in a world (`spread`, in logits).
"equal": both conditions are equally good, so every p <= .05 is an error of type I; so is a claim that is met, which asks for .05 more and
an interval above 0 besides, and a family of six such claims of which one is met after Holm's correction. "five less": the memory is right
in .05 of the answers less, the edge of "not below" by a margin of .05; met is an error, of .025 of the cases at most by its interval.
Each sample goes through what is shipped: `of_numbered_pairs` and `holm`. The table stands in reports/reference/by-hand.md.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from hippo_core.results.criteria import load_criteria
from hippo_core.results.statistics.interval import numbered
from hippo_core.results.statistics.paired import Comparison, holm, of_numbered_pairs

ALPHA, MARGIN, FAMILY = 0.05, 0.05, 6


@dataclass(frozen=True)
class Setting:
    """Worlds of `items` items each; `spread` of a condition's luck in a world."""

    worlds: int
    items: int
    spread: float


SETTINGS = (Setting(40, 5, 1.0), Setting(20, 10, 1.0), Setting(20, 10, 0.0), Setting(12, 17, 0.5))


def right(shift: float, spread: float) -> float:
    """The share of right answers of a condition whose logits are moved by `shift`, over all worlds and items."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    return float((weights / (1 + np.exp(-(shift + np.sqrt(2 + spread**2) * points)))).sum() / weights.sum())


def compared(setting: Setting, shift: float, random: np.random.Generator) -> Comparison:
    """A memory whose logits are moved by `shift` against a rival, on the same made-up questions."""
    worlds = np.repeat(np.arange(setting.worlds), setting.items)
    hard = random.normal(size=setting.worlds)[worlds] + random.normal(size=len(worlds))
    conditions = [
        random.random(len(worlds)) < 1 / (1 + np.exp(-(hard + moved + random.normal(0, setting.spread, setting.worlds)[worlds])))
        for moved in (shift, 0.0)
    ]
    return of_numbered_pairs(*(values.astype(float) for values in conditions), numbered(worlds))


def rates(setting: Setting, samples: int) -> list[float]:
    """Of equal conditions: p of worlds, exact and mid-p of items, a claim that is met, a family with one met; of a memory that is five
    less: "not below" met."""
    random = np.random.default_rng(0)
    equal = [compared(setting, 0.0, random) for _ in range(samples)]
    less = float(brentq(lambda shift: right(shift, setting.spread) - right(0.0, setting.spread) + MARGIN, -2, 0))
    below = [compared(setting, less, random) for _ in range(samples)]
    families = [equal[start : start + FAMILY] for start in range(0, samples - FAMILY + 1, FAMILY)]
    return [
        float(np.mean(comparisons_of))
        for comparisons_of in (
            [pair.p_permutation <= ALPHA for pair in equal],
            [pair.p_mcnemar <= ALPHA for pair in equal],
            [pair.p_mid <= ALPHA for pair in equal],
            [_above(pair, pair.p_permutation) for pair in equal],
            [any(map(_above, family, holm([pair.p_permutation for pair in family]))) for family in families],
            [pair.low > -MARGIN for pair in below],
        )
    ]


def _above(pair: Comparison, p: float) -> bool:
    return pair.difference >= MARGIN and pair.low > 0 and p <= ALPHA


def main() -> None:
    """Print a line a setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4000)
    samples = parser.parse_args().samples
    criteria = load_criteria()
    rules = {(criterion.rule, criterion.target) for criterion in criteria.criteria if criterion.metric == "score_calibrated"}
    assert rules == {("at_least", MARGIN), ("not_below", -MARGIN)}, rules
    assert (criteria.alpha, criteria.margin) == (ALPHA, MARGIN)
    print("| worlds | items in each | spread | worlds permuted | exact | mid-p | above, met | one of six above | not below, met |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for setting in SETTINGS:
        shown = " | ".join(f"{rate:.3f}" for rate in rates(setting, samples))
        print(f"| {setting.worlds} | {setting.items} | {setting.spread:g} | {shown} |", flush=True)


if __name__ == "__main__":
    main()

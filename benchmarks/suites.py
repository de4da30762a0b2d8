"""Seconds to draw 1,000 items of each suite (of `consolidation` as many as it has facts, counted as if there were 1,000); the last line is
the slowest beside the two seconds that are allowed.

python benchmarks/suites.py
"""

import time
from statistics import median

from hippo_core.suites import drawn_suites
from hippo_core.suites.consolidation import most_facts
from hippo_core.suites.draw import worlds

ITEMS, ROUNDS, ALLOWED = 1000, 3, 2.0


def draw(suite: str, seed: int) -> float:
    """Seconds for the test worlds of a suite with 1,000 items, drawn and not written."""
    items = min(ITEMS, most_facts(seed)) if suite == "consolidation" else ITEMS
    begin = time.perf_counter()
    asked = sum(len(world.items) for world in worlds(suite, "default", items, seed, "test"))
    took = time.perf_counter() - begin
    assert asked == items, f"{suite}: {asked} items"
    return took * ITEMS / items


def main() -> None:
    """Time every suite."""
    medians = {suite: median(draw(suite, 1337 + turn) for turn in range(ROUNDS)) for suite in drawn_suites()}
    for suite, took in medians.items():
        print(f"{suite:18} {took:.2f} s for {ITEMS} items")
    slowest = max(medians, key=lambda suite: medians[suite])
    print(f"slowest suite {slowest}: {medians[slowest]:.2f} s, ratio to the allowed {ALLOWED:.0f} s {medians[slowest] / ALLOWED:.2f}")


if __name__ == "__main__":
    main()

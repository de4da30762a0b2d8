"""How long a comparison of a million paired items takes: `compare_conditions`, as `hippo paired compare` calls it once the runs are read.

python benchmarks/paired_items.py [ITEMS]

Made-up rows of two conditions: worlds of 100 items, four types, three tags, all scores and costs; success differs at a fifth of the items.
A second line has three repeats of a third of the items. Nothing is timed but the comparison: results, intervals, permutations, groups.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from hippo_core.protocols.paired.comparison import PER_ITEM, Paired, RunCondition, compare_conditions
from hippo_core.protocols.paired.run_files import PairedRun
from hippo_core.protocols.paired.scoring import SCORES

ITEMS, OF_A_WORLD, GOAL = 1_000_000, 100, 10.0  # goal in seconds, on two cores


def condition(name: str, items: int, repeats: int, seed: int) -> RunCondition:
    """A condition's rows, in random order as a run has them."""
    random = np.random.default_rng(seed)
    number = np.tile(np.arange(items), repeats)
    success = ((number * 7919 % 5 < 3) ^ (random.random(len(number)) < 0.1)).astype(float)
    rows = pd.DataFrame(
        {"item": pd.Series(number).map("item-{:07}".format), "world": pd.Series(number // OF_A_WORLD).map("world-{:05}".format)}
    )
    rows["type"] = np.array(("retrieval", "grounded_answer", "adversarial_stale", "resume_quality"))[number % 4]
    rows["tags"] = np.array(("held-out", "held-out;paraphrase", ""))[number % 3]
    rows["question"], rows["answer"], rows["success"] = "Where is the key?", "On the shelf.", success
    for column in (*SCORES, *PER_ITEM):
        rows[column] = random.random(len(number))
    rows = rows.sample(frac=1, random_state=seed, ignore_index=True)
    return RunCondition(name, PairedRun(Path(name), {"checksums": {}, "settings": {}}, rows), rows)


def timed(items: int, repeats: int) -> tuple[float, float, Paired]:
    """Seconds of CPU and by the clock, and the comparison."""
    baseline, candidate = (condition(name, items, repeats, seed) for seed, name in enumerate(("baseline", "candidate")))
    cpu, clock = time.process_time(), time.perf_counter()
    comparison = compare_conditions(baseline, candidate)
    return time.process_time() - cpu, time.perf_counter() - clock, comparison


def main() -> None:
    """Print a line a kind of run; the goal is of the first."""
    items = int(sys.argv[1]) if len(sys.argv) > 1 else ITEMS
    for count, repeats in ((items, 1), (items // 3, 3)):
        cpu, clock, comparison = timed(count, repeats)
        title = f"{comparison.success.n:,} paired items of {comparison.success.n_worlds:,} worlds, {repeats} a side of each"
        goal = f"; goal {GOAL:g} s: {'met' if clock < GOAL else 'missed'}" if (count, repeats) == (ITEMS, 1) else ""
        print(f"{title}: compared in {cpu:.1f} s of CPU ({clock:.1f} by the clock){goal}", flush=True)


if __name__ == "__main__":
    main()

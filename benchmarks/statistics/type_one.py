"""How often two conditions that are equally good are called different at .05, by each number that `hippo paired compare` prints.

    python benchmarks/statistics/type_one.py [--samples 2000]        (some five minutes of CPU)

Made-up runs: items of a world are of like difficulty, each condition is by chance better or worse in a world (`spread`, in logits) though
not over all worlds, and each repeat is a draw of its own. Both conditions are made alike, so any claim is an error of type I. Each run goes
through what is shipped: repeats averaged (`by_item`), success compared by world (`compared`), McNemar's counts (`item_counts`). For what
they guard against, McNemar's test is shown on all repeats as if they were items. The table stands in reports/reference/by-hand.md.
"""

import argparse
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hippo_core.protocols.paired import comparison
from hippo_core.protocols.paired.scoring import SCORES
from hippo_core.results.statistics.paired import mcnemar

ALPHA = 0.05


@dataclass(frozen=True)
class Setting:
    """Worlds of `items` items each (of 2 to twice as many less 2, where they are `uneven`), `repeats` of each; `spread` of a condition's
    luck in a world."""

    worlds: int
    items: int
    repeats: int
    spread: float
    uneven: bool = False


SETTINGS = (
    Setting(30, 10, 3, 1.0),
    Setting(14, 10, 3, 1.0, uneven=True),
    Setting(50, 10, 3, 1.0, uneven=True),
    Setting(14, 10, 1, 1.0),
    Setting(30, 10, 1, 1.0),
    Setting(30, 10, 1, 0.0),
)


def made(setting: Setting, random: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of two conditions that are equally good."""
    low, high = (2, 2 * setting.items - 2) if setting.uneven else (setting.items, setting.items)
    sizes = random.integers(low, high + 1, setting.worlds)
    world = np.repeat(np.arange(setting.worlds), sizes)
    hard = random.normal(0, 1, setting.worlds)[world] + random.normal(0, 1, len(world))
    names = np.array([f"i{number:05}" for number in range(len(world))])
    conditions = []
    for _ in range(2):
        logit = hard + random.normal(0, setting.spread, setting.worlds)[world]
        right = random.random((setting.repeats, len(world))) < 1 / (1 + np.exp(-logit))
        columns = {"item": np.tile(names, setting.repeats), "world": np.tile(world.astype(str), setting.repeats)}
        rows = pd.DataFrame({**columns, "success": right.astype(float).ravel()})
        conditions.append(rows.assign(type="t", tags="", question="", answer="", **dict.fromkeys((*SCORES, *comparison.PER_ITEM), np.nan)))
    return conditions[0], conditions[1]


def claims(setting: Setting, random: np.random.Generator) -> tuple[bool, bool, bool, bool]:
    """Whether worlds permuted, the interval, McNemar's p of items, and that of all repeats call the two different."""
    rows = made(setting, random)
    left, right = (comparison.by_item(table) for table in rows)
    result = comparison.compared(left, right, "success")
    by_repeat = rows[0]["success"].to_numpy() - rows[1]["success"].to_numpy()
    p_items = mcnemar(*comparison.item_counts(left, right))
    p_repeats = mcnemar(int((by_repeat > 0).sum()), int((by_repeat < 0).sum()))
    return result.p_permutation <= ALPHA, not result.low <= 0 <= result.high, p_items <= ALPHA, p_repeats <= ALPHA


def main() -> None:
    """Print a line a setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    samples = parser.parse_args().samples
    print(
        "| worlds | items in each | repeats | spread | worlds permuted | 95% interval without 0 | McNemar, items | McNemar, all repeats |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    for setting in SETTINGS:
        random = np.random.default_rng(0)
        rates = np.mean([claims(setting, random) for _ in range(samples)], axis=0)
        items = f"2 to {2 * setting.items - 2}" if setting.uneven else str(setting.items)
        shown = " | ".join(f"{rate:.3f}" for rate in rates)
        print(f"| {setting.worlds} | {items} | {setting.repeats} | {setting.spread:g} | {shown} |", flush=True)


if __name__ == "__main__":
    main()

"""Where an explorer is held to be, step by step, beside where it is: with places recognised, and by its told moves alone.

    python benchmarks/memory/localisation.py [--walks 20] [--noise 0.05,0.1,0.2]

Worlds as in the profile explore_hard (5 x 5, places that share labels, links that change, labels missing or told wrong), with as many
rounds as it takes; directions and labels are told wrong with the probability `noise`. Error: cells as the crow flies, the start known; a
turned or shifted map counts in full. One thread.
"""

import argparse
import time
from random import Random

import numpy as np

from hippo_core.methods.spatial.localise import integrate, localise
from hippo_core.methods.spatial.place_map import grid_layout
from hippo_core.methods.spatial.reading import VisitStatement
from hippo_core.suites import settings_for
from hippo_core.suites.spatial import draw_map
from hippo_core.suites.spatial.explore import draw_aliases, maps_of_rounds, misreport, observe, union

STEPS = (10, 30, 100, 300, 1000)


def walk(seed: int, noise: float, steps: int) -> tuple[list[VisitStatement], list[tuple[int, int]]]:
    """A told walk of so many steps, and the true cell of each, the first at (0, 0)."""
    random, settings = Random(f"localisation/{seed}"), settings_for("spatial", "explore_hard", {"noise": noise, "rounds": 4 + steps // 20})
    drawn = None
    while drawn is None:
        drawn = draw_map(random, settings, "val", is_grid=True)
    maps = maps_of_rounds(random, drawn[0], settings)
    labels = draw_aliases(random, maps[-1], settings.aliases)
    visits = observe(random, settings, maps, labels, {})[:steps]
    reported = misreport(random, visits, noise, sorted(set(labels.values())))
    cells = grid_layout(union(maps).steps)
    row, column = cells[visits[0].place]
    true = [(cells[visit.place][0] - row, cells[visit.place][1] - column) for visit in visits]
    statements = [VisitStatement(number, v.move or "", "", v.label or "", frozenset(v.open), v.seen) for number, v in enumerate(reported)]
    return statements, true


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--noise", default="0.05,0.1,0.2")
    parser.add_argument("--particles", type=int, default=16)
    arguments = parser.parse_args()
    print(f"{arguments.walks} walks of {STEPS[-1]} steps, {arguments.particles} particles")
    print("mean error in cells at the step (share of the steps up to it with none)")
    print("| told wrong | | " + " | ".join(f"step {step:,}" for step in STEPS) + " | ms a step |\n|--:|---|" + "--:|" * (len(STEPS) + 1))
    for noise in map(float, arguments.noise.split(",")):
        walks = [walk(seed, noise, STEPS[-1]) for seed in range(arguments.walks)]
        for name, locate in (("filter", lambda visits: localise(visits, arguments.particles)), ("moves alone", integrate)):
            begin = time.perf_counter()
            estimates = [locate(visits).cells for visits, _ in walks]
            ms = (time.perf_counter() - begin) * 1e3 / sum(len(visits) for visits, _ in walks)
            errors = np.array(
                [
                    [np.hypot(*np.subtract(a, b)) for a, b in zip(own, true, strict=True)]
                    for own, (_, true) in zip(estimates, walks, strict=True)
                ]
            )
            row = [f"{errors[:, step - 1].mean():.2f} ({(errors[:, :step] == 0).mean():.2f})" for step in STEPS]
            print(f"| {noise} | {name} | " + " | ".join(row) + f" | {ms:.2f} |", flush=True)


if __name__ == "__main__":
    main()

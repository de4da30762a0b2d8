"""What the gate of the spatial memory does to its map, on worlds that an explorer tells of.

    python benchmarks/memory/spatial_gate.py [--split val] [--n 200] [--profile explore_hard] [--overrides '{"spurious": 1.0}']

A row without a gate and one for each threshold, with places recognised and with a place its label: edges that are held for 1,000
observations, and of these how many the true map has; of the ways how many succeed, and how long they are beside the shortest, as the map
alone answers; decisions; microseconds of a plan. One thread.
"""

import argparse
import json
import time
from collections import Counter
from itertools import product
from statistics import median
from typing import Any

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.settings import BlockSettings, SpatialSection
from hippo_core.results.scores import score_item
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.spatial.path import true_path
from hippo_core.suites.types import World

GATES = (None, 0.8, 1.0, 1.2)
REPEATS = 20  # of each plan that is timed
PATH_KINDS = ("grid_path", "graph_path")


def measure(drawn_worlds: list[World], settings: SpatialSection) -> dict[str, float]:
    """The numbers of one row."""
    suite, sums, path_scores, all_scores, subs, micros = get_suite("spatial"), Counter[str](), [], [], [], []
    for world in drawn_worlds:
        atlas = MapAnswerer([fact.text for fact in world.facts], settings)
        edges = atlas.map.edges
        sums.update(edges.decisions)
        path_item = next(item for item in world.items if item.truth)
        true, _, _ = true_path(world, path_item)
        counts = {"edges": len(edges.held), "open": len(atlas.map.links), "told": len(atlas.observations)}
        sums.update(counts | {"true": len({frozenset((a, b)) for a, near in true.steps.items() for b in near.values()})})
        for item in world.items:
            answer = atlas.answer(item.question)
            row = score_item(suite, world, item, answer.answer if answer else "")
            all_scores.append(row["score"])
            if item.kind in PATH_KINDS:
                path_scores.append(row["success"])
            if item.kind in PATH_KINDS and row["success"]:
                subs.append(row["suboptimality"])
            if answer and answer.route:
                for _ in range(REPEATS):
                    begin = time.perf_counter()
                    atlas.planner.route(answer.route.places[0], answer.route.places[-1])
                    micros.append((time.perf_counter() - begin) * 1e6)
    mean = {
        "right": sum(all_scores) / len(all_scores),
        "success": sum(path_scores) / len(path_scores),
        "sub": sum(subs) / max(1, len(subs)),
    }
    return {**sums, **mean, "plan_us": median(micros), "per_1k": 1e3 * sums["edges"] / sums["told"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="val")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--profile", default="explore_hard")
    parser.add_argument("--overrides", type=json.loads, default={}, help="settings of the suite, as JSON")
    asked = parser.parse_args()
    overrides: dict[str, Any] = asked.overrides
    drawn_worlds = list(worlds("spatial", asked.profile, asked.n, split=asked.split, overrides=overrides))
    print(f"{len(drawn_worlds)} worlds, {asked.n} questions, {asked.profile} {overrides or ''}")
    print("| places | gate | edges / 1,000 | open | true | right | ways | steps / fewest | insert | aggregate | block | drop | us a plan |")
    print("|---|---|" + "--:|" * 11)
    for integrated, threshold in product((True, False), GATES):
        gate = BlockSettings(enabled=threshold is not None, block_threshold=threshold or 1.2)
        row = measure(drawn_worlds, SpatialSection(path_integration=integrated, gate=gate))
        cells = [f"{row['per_1k']:.0f}", f"{row['open']:.0f}", f"{row['true']:.0f}", f"{row['right']:.3f}", f"{row['success']:.3f}"]
        cells += [f"{row['sub']:.3f}", *(f"{row.get(name, 0):.0f}" for name in ("insert", "aggregate", "block", "drop"))]
        print(
            f"| {'recognised' if integrated else 'labels'} | {threshold or 'off'} | {' | '.join(cells)} | {row['plan_us']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

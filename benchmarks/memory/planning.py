"""What the map of the spatial memory answers by itself, without a model: the planner alone, an upper bound of what a model can say of it.

    python benchmarks/memory/planning.py [--split val] [--n 200] [--profiles default,explore_hard] [--without-path-integration]

Success of ways, whose legality is judged on the true map, and exact match of other kinds; and how many questions the map had an answer to.
One thread.
"""

import argparse
import time
from collections import defaultdict

from hippo_core.methods.spatial.answers import Atlas
from hippo_core.methods.spatial.settings import SpatialSection
from hippo_core.results.scores import score_item
from hippo_core.suites import get_suite
from hippo_core.suites.datasets.build import worlds

PROFILES = ("default", "hard", "labeled", "paths_5", "paths_7", "paths_9", "explore", "explore_hard")


def show(profile: str, split: str, n: int, settings: SpatialSection, misses: int) -> None:
    """One row a kind of question."""
    suite, scores, subs, answered, seconds = get_suite("spatial"), defaultdict(list), [], defaultdict(int), 0.0
    for world in worlds("spatial", profile, n, split=split):
        begin = time.perf_counter()
        atlas = Atlas([fact.text for fact in world.facts], settings)
        said = {item.id: atlas.say(item.question) for item in world.items}
        seconds += time.perf_counter() - begin
        for item in world.items:
            one = said[item.id]
            if one and not one.answer:  # statements, for a model to read
                scores[f"{item.kind}, the right statement"].append(
                    float({world.facts[told].id for told in one.told} >= set(item.gold_facts))
                )
                answered[f"{item.kind}, the right statement"] += 1
                continue
            row = score_item(suite, world, item, one.answer if one else "")
            scores[item.kind].append(row["score"])
            answered[item.kind] += one is not None
            if row["score"] and row["suboptimality"] == row["suboptimality"]:
                subs.append(row["suboptimality"])
            if one and not row["score"] and misses > 0:
                misses -= 1
                print("    missed:", item.question, "|", one.sentence, "| expected", item.answers[0])
    for kind, own in scores.items():
        print(f"| {profile} | {kind} | {len(own)} | {answered[kind]} | {sum(own) / len(own):.3f} |")
    if subs:
        print(f"| {profile} | steps / fewest | {len(subs)} | | {sum(subs) / len(subs):.3f} |")
    print(f"| {profile} | seconds a question | {n} | | {seconds / n:.4f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="val")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--profiles", default=",".join(PROFILES))
    parser.add_argument("--without-path-integration", action="store_true")
    parser.add_argument("--misses", type=int, default=0)
    told = parser.parse_args()
    settings = SpatialSection(path_integration=not told.without_path_integration)
    print("| profile | kind | questions | answered by the map | right |\n|---|---|--:|--:|--:|")
    for profile in told.profiles.split(","):
        show(profile, told.split, told.n, settings, told.misses)


if __name__ == "__main__":
    main()

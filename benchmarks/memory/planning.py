"""What the map of the spatial memory answers by itself, without a model: the planner alone, an upper bound of what a model can say of it.

    python benchmarks/memory/planning.py [--suite folder:data/ways]
        [--split val] [--n 200] [--profiles default,explore_hard] [--without-path-integration] [--patterns-alone]

For a suite other than `spatial` a first table says of its statements which links were read, and of its questions why one was missed.
Success of ways, whose legality is judged on the true map, and exact match of other kinds; and how many questions the map had an answer to.
One thread.
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Sequence

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.learned import PlaceReader, fitted_places
from hippo_core.methods.spatial.reading import Link, Observation
from hippo_core.methods.spatial.settings import SpatialSection
from hippo_core.results.scores import score_item
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Fact, Item, World

PROFILES = ("default", "hard", "labeled", "paths_5", "paths_7", "paths_9", "explore", "explore_hard")


def is_read(fact: Fact, observations: Sequence[Observation], names: dict[str, str]) -> bool:
    """Whether the link that a statement's slots `a` and `b` name is what alone is read from it; without them, whether none is."""
    links = [link for link in observations if isinstance(link, Link) and not link.closed]
    if "a" not in fact.slots or len(links) != 1:
        return "a" not in fact.slots and not links
    named = {fact.slots["a"].lower(), fact.slots["b"].lower()}
    ends = {names.get(at, at).lower() for at in (links[0].origin, links[0].goal)}
    return ends == named and bool(links[0].word) == ("way" in fact.slots)


def links_read(world: World, atlas: MapAnswerer) -> dict[str, bool]:
    """Of each statement, whether it is read as what it is."""
    by_fact = defaultdict[int, list[Observation]](list)
    for number, observation in atlas.observations:
        by_fact[number].append(observation)
    return {fact.id: is_read(fact, by_fact[number], atlas.names) for number, fact in enumerate(world.facts)}


def cause(world: World, item: Item, atlas: MapAnswerer) -> str:
    """What a question was missed by, the first thing in the order of the work: a link, an invented link, the question, the plan."""
    read = links_read(world, atlas)
    if not all(read[fact_id] for fact_id in item.gold_facts):
        return "a link of the way was not read"
    wanted = atlas.asked(item.question)
    if wanted is None or wanted.kind != "way" or wanted.goal is None:
        return "the question was not read"
    if not all(read[fact.id] for fact in world.facts if "a" not in fact.slots):
        return "a link was invented"
    return "the plan, or its words"


def show_causes(suite: str, split: str, n: int, settings: SpatialSection, reader: PlaceReader | None) -> None:
    """Links read and misses by cause, of a suite whose slots `a`, `b` and `way` say its links."""
    links, causes = Counter[tuple[str, bool]](), Counter[str]()
    for world in worlds(suite, "default", n, split=split):
        atlas = MapAnswerer([fact.text for fact in world.facts], settings, reader=reader)
        read = links_read(world, atlas)
        links.update(("links" if "a" in fact.slots else "no links", read[fact.id]) for fact in world.facts)
        for item in world.items:
            answer = atlas.answer(item.question)
            if not score_item(get_suite(suite), world, item, answer.answer if answer else "")["score"]:
                causes[cause(world, item, atlas)] += 1
    print("| what | all | right |\n|---|--:|--:|")
    for kind in ("links", "no links"):
        print(f"| statements that tell {kind} | {links[kind, True] + links[kind, False]} | {links[kind, True]} |")
    for name, count in causes.most_common():
        print(f"| missed: {name} | {count} | |")


def show(name: str, profile: str, split: str, n: int, settings: SpatialSection, reader: PlaceReader | None) -> None:
    """One row a kind of question."""
    suite, scores, subs, answered, seconds = get_suite(name), defaultdict(list), [], defaultdict(int), 0.0
    for world in worlds(name, profile, n, split=split):
        begin = time.perf_counter()
        atlas = MapAnswerer([fact.text for fact in world.facts], settings, reader=reader)
        answers = {item.id: atlas.answer(item.question) for item in world.items}
        seconds += time.perf_counter() - begin
        for item in world.items:
            answer = answers[item.id]
            if answer and not answer.answer:  # statements, for a model to read
                scores[f"{item.kind}, the right statement"].append(
                    float({world.facts[number].id for number in answer.statements} >= set(item.gold_facts))
                )
                answered[f"{item.kind}, the right statement"] += 1
                continue
            row = score_item(suite, world, item, answer.answer if answer else "")
            scores[item.kind].append(row["score"])
            answered[item.kind] += answer is not None
            if row["score"] and row["suboptimality"] == row["suboptimality"]:
                subs.append(row["suboptimality"])
    for kind, own in scores.items():
        print(f"| {profile} | {kind} | {len(own)} | {answered[kind]} | {sum(own) / len(own):.3f} |")
    if subs:
        print(f"| {profile} | steps / fewest | {len(subs)} | | {sum(subs) / len(subs):.3f} |")
    print(f"| {profile} | seconds a question | {n} | | {seconds / n:.4f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="spatial")
    parser.add_argument("--split", default="val")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--profiles", help="of the suite; default: all of `spatial`, `default` of another")
    parser.add_argument("--without-path-integration", action="store_true")
    parser.add_argument("--patterns-alone", action="store_true", help="without the fitted reader, as without MiniLM")
    arguments = parser.parse_args()
    reader = None if arguments.patterns_alone else fitted_places()
    settings = SpatialSection(path_integration=not arguments.without_path_integration)
    profiles = arguments.profiles or (",".join(PROFILES) if arguments.suite == "spatial" else "default")
    if arguments.suite != "spatial":
        show_causes(arguments.suite, arguments.split, arguments.n, settings, reader)
    print("| profile | kind | questions | answered by the map | right |\n|---|---|--:|--:|--:|")
    for profile in profiles.split(","):
        show(arguments.suite, profile, arguments.split, arguments.n, settings, reader)


if __name__ == "__main__":
    main()

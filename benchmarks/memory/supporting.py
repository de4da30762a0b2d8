"""How many questions of bAbI's first three tasks are shown all statements that support their answer, by the relational memory and by rags.

    HIPPO_DATA=... python benchmarks/memory/supporting.py [--split test] [--n 300] [--preset ...]

The public stories; no model answers. `all`: the share of questions with all supporting statements among those shown; `shown`: how many are,
in the mean. Intervals (95 %) draw stories. What is looked at while something is built is the split val.
"""

import argparse
from collections import defaultdict

from retrieval import method_of, opened

from hippo_core.methods.base import Query
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds

TASKS = ("qa1", "qa2", "qa3")
PRESETS = (
    "memory/sgc_rss[encoder=minilm]",
    *(f"{name}[k={k}]" for k in (3, 5) for name in ("rag_bm25", "rag_sum", "rag_graph")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", default="test", choices=("val", "test"))
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--preset", nargs="+", default=PRESETS)
    options = parser.parse_args()
    lm, suite = load(load_spec("hippo-tiny"), threads=1), get_suite("babi")
    asked = list(worlds("babi", "public", options.n, 1337, options.split, lm.spec.context_limit))
    print(f"babi/public, {options.split}: {sum(len(world.items) for world in asked)} questions of {len(asked)} stories")
    print("| method | " + " | ".join(f"{task} all | shown" for task in TASKS) + " |\n|---" + "|--:" * 2 * len(TASKS) + "|")
    for name in options.preset:
        label, method = method_of(lm, name)
        hits, shown = defaultdict(list), defaultdict(list)
        for world in asked:
            retrieve = opened(method, suite, world)
            for item in world.items:
                sources = [trace.source for trace in retrieve(Query(item.question, item.taught)).shown]
                hits[item.kind].append((float(set(item.gold_facts) <= set(sources)), world.id))
                shown[item.kind].append(len(sources))
            method.forget()
        cells = []
        for task in TASKS:
            values, stories = zip(*hits[task], strict=True)
            share = cluster_interval(values, stories)
            cells.append(f"{share.mean:.2f} ({share.low:.2f} to {share.high:.2f}) | {sum(shown[task]) / len(shown[task]):.1f}")
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

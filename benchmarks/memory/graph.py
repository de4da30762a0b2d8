"""How well passages are found that are joined where one names the title of another; its weights chosen on one corpus, shown on another.

    HIPPO_DATA=... python benchmarks/memory/graph.py choose    every weight on HotpotQA: the answer in one of the 1, 2, 5 and 10 best
    HIPPO_DATA=... python benchmarks/memory/graph.py show      2WikiMultiHopQA beside rags, and with each step left out
    HIPPO_DATA=... python benchmarks/memory/graph.py cost      seconds to read 6,119 passages, ms to put one in or out, beside networkx

What is chosen is best by the mean of the answer among 2, 5 and 10. Nothing of 2WikiMultiHopQA takes part in that. Vectors of passages are
kept on disk (data/generated/encoded); `cost` encodes a part of them anew. One thread.
"""

import argparse
import time
from collections.abc import Iterable
from itertools import product

import networkx as nx
import numpy as np
from retrieval import method_of

from hippo_core.experiments.answer.run import passages_of
from hippo_core.methods.base import Query
from hippo_core.methods.relational.passages import LinkedPassages, LinkedSettings, PassageGraph, pagerank, title_of, walk_of
from hippo_core.methods.relational.settings import PassagesSection
from hippo_core.models import minilm
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.rankings import answer_recall
from hippo_core.retrieval.ranking import ranked
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.suites.datasets.build import worlds

NAMED, LINKED, HUB = (4.0, 6.0, 8.0, 10.0), (4.0, 6.0, 8.0, 10.0), (0.0, 0.3, 0.6)
RAGS = ("rag_bm25", "rag_dense[encoder=minilm]", "rag_sum", "rag_graph", "memory/sgc_rss[encoder=minilm]")
WITHOUT = {
    "as the preset": {},
    "no links between passages": {"linked": 0},
    "no names of the question": {"named": 0},
    "seeds by the question's names alone": {"seeds": 0},
    "a seed's links count in full": {"hub": 0},
    "all seeds alike": {"fade": 0},
    "PageRank in the place of one hop": {"search": "pagerank"},
}
PART = 512  # passages that are encoded anew


def world_of(suite: str):
    """The only world of a suite, and its passages."""
    [world] = worlds(suite)
    return world, passages_of(world)


def choose(lm) -> None:
    """Print every choice of the three weights on HotpotQA, best first."""
    world, traces = world_of("hotpotqa")
    items = [item for item in world.items if item.gold_facts]
    index = WorldIndex(lm, traces, [item.question for item in items])
    print(f"hotpotqa: {len(traces):,} passages, {len(items)} questions")
    print("| named | linked | hub | @1 | @2 | @5 | @10 | mean of the last three |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    rows = []
    for weights in ((0.0, 0.0, 0.0), *product(NAMED, LINKED, HUB)):
        section = PassagesSection(**dict(zip(("named", "linked", "hub"), weights, strict=True)))
        method = LinkedPassages(lm, LinkedSettings(passages=section))
        found = []
        for item in items:
            best = [traces[place] for place in ranked(method.scores(index, Query(item.question, item.taught)))[:10]]
            found.append([answer_recall(best, item.answers, k) for k in (1, 2, 5, 10)])
        shares = np.mean(found, axis=0)
        rows.append((shares[1:].mean(), weights, shares))
    for mean, weights, shares in sorted(rows, key=lambda row: -row[0]):
        print(
            "|", " | ".join([*(f"{value:g}" for value in weights), *(f"{share:.3f}" for share in shares), f"{mean:.4f}"]), "|", flush=True
        )


def found_by(method, world, traces) -> list[float]:
    """Shares of gold passages among 2 and 5, of questions with all of theirs among 5 and 10, ms a question, s to the first answer."""
    begin = time.perf_counter()
    retrieve = method.open(traces, [item.question for item in world.items])
    retrieve(Query(world.items[0].question, world.items[0].taught))
    first, rows = time.perf_counter() - begin, []
    for item in world.items:
        found = retrieve(Query(item.question, item.taught))
        best, gold = [trace.source for trace in found.ranking or ()], set(item.gold_facts)
        shares = [len(gold & set(best[:k])) / len(gold) for k in (2, 5)]
        rows.append([*shares, *(float(gold <= set(best[:k])) for k in (5, 10)), found.recall_ms])
    return [*np.mean(rows, axis=0).tolist(), first]


def show(lm, names: Iterable[str]) -> None:
    """Print 2WikiMultiHopQA's table, and the preset with each step left out."""
    world, traces = world_of("twowiki")
    print(f"twowiki: {len(traces):,} passages, {len(world.items)} questions, vectors kept")
    print("| method | R@2 | R@5 | all @5 | all @10 | ms | s to the first answer |\n|---|--:|--:|--:|--:|--:|--:|")
    cut = {label: LinkedPassages(lm, LinkedSettings(passages=PassagesSection(**other))) for label, other in WITHOUT.items()}
    for label, method in [*(method_of(lm, name) for name in names), *cut.items()]:
        *shares, ms, first = found_by(method, world, traces)
        print(f"| {label} | {' | '.join(f'{share:.3f}' for share in shares)} | {ms:.0f} | {first:.1f} |", flush=True)


def cost() -> None:
    """Print what reading takes, what one passage more or less takes, and a walk beside networkx."""
    _, traces = world_of("twowiki")
    begin = time.perf_counter()
    graph = PassageGraph.of(traces)
    titled = time.perf_counter()
    links = [(number, link) for number in graph.texts for link in graph.links(number)]
    print(f"{len(traces):,} passages: titles {titled - begin:.2f} s; all {len(links):,} links {time.perf_counter() - titled:.2f} s")
    minilm.encode([traces[0].text])
    part = [trace.text for trace in traces[:: max(1, len(traces) // PART)]]
    begin = time.perf_counter()
    minilm.encode(part)
    encoded = time.perf_counter() - begin
    print(f"encoding {len(part)} passages {encoded:.1f} s, so all {encoded * len(traces) / len(part):.0f} s")
    taken = {"encode": [], "put in": [], "take out": []}
    for number in range(0, len(traces), len(traces) // 100):
        steps = {
            "encode": lambda at=number: minilm.encode([traces[at].text]),
            "take out": lambda at=number: graph.remove(at),
            "put in": lambda at=number: graph.add(at, title_of(traces[at]), traces[at].text),
        }
        for name, step in steps.items():
            begin = time.perf_counter()
            step()
            taken[name].append((time.perf_counter() - begin) * 1e3)
    print("one passage, ms, median and 95 %: " + "; ".join(f"{k} {np.median(v):.3f}, {np.quantile(v, 0.95):.3f}" for k, v in taken.items()))
    beside_networkx(graph)


def beside_networkx(graph: PassageGraph) -> None:
    """Print a walk from five passages, with scipy and with networkx on the same links, both from links that were read."""
    size = len(graph.texts)
    steps = walk_of(graph)
    start = np.zeros(size)
    start[:5] = 0.2
    begin = time.perf_counter()
    rank = pagerank(steps, start, 0.5)
    walked = time.perf_counter()
    other = nx.Graph()
    other.add_nodes_from(range(size))
    other.add_edges_from((number, link) for number in graph.texts for link in graph.links(number))
    read = time.perf_counter()
    theirs = nx.pagerank(other, alpha=0.5, personalization=dict(enumerate(start)), max_iter=100, tol=1e-12)
    asked = time.perf_counter()
    furthest = np.abs(rank / rank.sum() - [theirs[number] for number in range(size)]).max()  # theirs loses no walk
    print(f"a walk {(walked - begin) * 1e3:.1f} ms, networkx {(asked - read) * 1e3:.1f} ms; furthest apart {furthest:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("choose", "show", "cost"))
    parser.add_argument("--preset", nargs="+", default=RAGS)
    options = parser.parse_args()
    lm = load(load_spec("hippo-tiny"), threads=1)
    if options.part == "choose":
        choose(lm)
    elif options.part == "show":
        show(lm, options.preset)
    else:
        cost()


if __name__ == "__main__":
    main()

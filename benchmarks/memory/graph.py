"""How well passages are found that are joined where one names the title of another; its weights chosen on one corpus, shown on another.

    HIPPO_DATA=... python benchmarks/memory/graph.py choose    the weights on one half of HotpotQA, told on the other
    HIPPO_DATA=... python benchmarks/memory/graph.py show      2WikiMultiHopQA beside rags, and with each step left out
    HIPPO_DATA=... python benchmarks/memory/graph.py cost      seconds to read 6,119 passages, ms to put one in or out

What is chosen by: `worth`. Nothing of 2WikiMultiHopQA takes part in that. Vectors of passages are kept on disk (data/generated/encoded);
`cost` encodes a part of them anew. One thread, unless `--threads` says.
"""

import argparse
import json
import time
from collections.abc import Iterable

import numpy as np
from retrieval import method_of

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Query
from hippo_core.methods.relational.passages import LinkedPassages, LinkedSettings, PassageGraph, title_of
from hippo_core.methods.relational.settings import PassagesSection
from hippo_core.models import minilm
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.ranking import ranked
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.suites.draw import worlds
from hippo_core.suites.natural.hotpotqa import FILE, paragraphs_of
from hippo_core.suites.types import World
from hippo_core.text_files import read_text

BEFORE = {"named": 6.0, "linked": 8.0, "hub": 0.3, "seeds": 5.0, "fade": 0.3, "naming": 0.0, "words": 0.0}
START = {"as it was": {"naming": 0.0, "words": 0.0}, "words": {"naming": 0.0}, "naming": {"words": 0.0}, "both": {}}  # what stays as it is
GRID = {
    "words": (0.0, 0.1, 0.25, 0.5, 1.0),
    "naming": (0.0, 2.0, 4.0, 6.0, 8.0),
    "named": (2.0, 4.0, 6.0, 8.0, 10.0),
    "linked": (4.0, 6.0, 8.0, 10.0, 12.0),
    "hub": (0.0, 0.15, 0.3, 0.6),
    "seeds": (0.0, 3.0, 5.0, 8.0, 12.0),
    "fade": (0.0, 0.3, 0.8),
}
RAGS = ("rag_bm25", "rag_dense[encoder=minilm]", "rag_sum", "rag_graph", "memory/sgc_rss[encoder=minilm]")
WITHOUT = {
    "as the preset": {},
    "no links between passages": {"linked": 0, "naming": 0},
    "no links to who names a seed": {"naming": 0},
    "no BM25": {"words": 0},
    "the weights of before": BEFORE | {"seeds": 5},
    "no names of the question": {"named": 0},
    "seeds by the question's names alone": {"seeds": 0},
    "a seed's links count in full": {"hub": 0},
    "all seeds alike": {"fade": 0},
}
PART = 512  # passages that are encoded anew


def world_of(suite: str):
    """The only world of a suite, and its passages."""
    [world] = worlds(suite)
    return world, passages_of(world)


def pairs(world: World) -> dict[str, frozenset[str]]:
    """By question of HotpotQA the ids of its two passages, as far as its own ten paragraphs tell: the file does not name them.

    One holds the answer. The other is the only one of the ten that names it or is named by it; where none or several do, the only one
    besides that the question names. Where two hold the answer it is these. Of a question that this leaves open nothing is said.
    """
    traces = passages_of(world)
    graph, numbers = PassageGraph.of(traces), {trace.text: number for number, trace in enumerate(traces)}
    own = {f"hotpotqa.q{number}": paragraphs_of(question) for number, question in enumerate(json.loads(read_text(FILE)))}
    sources, gained = {trace.source: number for number, trace in enumerate(traces)}, {}
    for item in world.items:
        ten, gold = [numbers[text] for text in own[item.id]], {sources[fact] for fact in item.gold_facts}
        joined = {near for near in ten if graph.links(near) & gold or any(near in graph.links(other) for other in gold)} - gold
        for both in (gold, gold | joined, gold | (graph.named(item.question) & {*ten})):
            if gold and len(both) == 2:
                gained[item.id] = frozenset(traces[number].source for number in both)
                break
    return gained


def choose(lm) -> None:
    """Print what a search over one weight at a time comes to on the even questions, from `BEFORE` on, and what that is worth on the others;
    without either of the terms that `BEFORE` lacks, and with both, which begins where the one without BM25 ended."""
    world, traces = world_of("hotpotqa")
    items, both = [item for item in world.items if item.gold_facts], pairs(world)
    index = WorldIndex(lm, traces, [item.question for item in items])
    halves = items[::2], items[1::2]
    print(f"hotpotqa: {len(traces):,} passages, {len(items)} questions, both passages known of {len(both)}")
    print("| | half | answer @1 | @2 | @5 | @10 | R@2 | R@5 | all @5 | all @10 |\n|---|---|" + "--:|" * 8)
    chosen = BEFORE
    for label, fixed in START.items():
        free = {name: values for name, values in GRID.items() if name not in fixed}
        begin = chosen if label == "both" else BEFORE | fixed
        chosen = climbed(lambda weights: worth(lm, index, halves[0], both, weights), begin, free)
        for weights in (begin, chosen):
            for half, asked in zip(("even", "odd"), halves, strict=True):
                cells = " | ".join(f"{share:.3f}" for share in shares_of(lm, index, asked, both, weights))
                print(f"| {label}: {', '.join(f'{name} {value:g}' for name, value in weights.items())} | {half} | {cells} |", flush=True)


def climbed(worth_of, weights: dict[str, float], grid: dict[str, tuple[float, ...]]) -> dict[str, float]:
    """The weights after two rounds in which each takes its best value in turn, the others as they are."""
    best = worth_of(weights)
    for _ in range(2):
        for name, values in grid.items():
            for value in values:
                if (other := worth_of(weights | {name: value})) > best + 1e-9:
                    best, weights = other, weights | {name: value}
    return weights


def worth(lm, index: WorldIndex, items, both, weights: dict[str, float]) -> float:
    """What is chosen by: the answer among 2, 5 and 10, and both passages (R@2, R@5, all among 5, among 10), the mean of these two means."""
    shares = shares_of(lm, index, items, both, weights)
    return float(shares[1:4].mean() + shares[4:].mean()) / 2


def shares_of(lm, index: WorldIndex, items, both, weights: dict[str, float]) -> np.ndarray:
    """The answer's passage among 1, 2, 5 and 10, of the question's own; then the four of both passages."""
    section = PassagesSection.model_validate(weights | {"seeds": int(weights["seeds"])})
    method, rows = LinkedPassages(lm, LinkedSettings(passages=section)), []
    for item in items:
        positions = ranked(method.scores(index, Query(item.question, item.taught)))[:10]
        best, gold = [item.taught[position] for position in positions], both.get(item.id)
        answered = [float(bool({*item.gold_facts} & {*best[:k]})) for k in (1, 2, 5, 10)]
        hits = [len(gold & {*best[:k]}) / 2 for k in (2, 5, 10)] if gold else [np.nan] * 3
        full = [*hits[:2], *(share if np.isnan(share) else float(share == 1) for share in hits[1:])]
        rows.append([*answered, *full])
    return np.nanmean(rows, axis=0)


def hit_rate(method, world, traces) -> list[float]:
    """Shares of gold passages among 2 and 5, of questions with all of theirs among 5 and 10, ms a question, s to the first answer."""
    begin = time.perf_counter()
    retrieve = method.open(traces, [item.question for item in world.items])
    retrieve(Query(world.items[0].question, world.items[0].taught))
    first, rows = time.perf_counter() - begin, []
    for item in world.items:
        retrieved = retrieve(Query(item.question, item.taught))
        best, gold = [trace.source for trace in retrieved.ranking or ()], set(item.gold_facts)
        shares = [len(gold & set(best[:k])) / len(gold) for k in (2, 5)]
        rows.append([*shares, *(float(gold <= set(best[:k])) for k in (5, 10)), retrieved.retrieval_ms])
    return [*np.mean(rows, axis=0).tolist(), first]


def show(lm, names: Iterable[str]) -> None:
    """Print 2WikiMultiHopQA's table, and the preset with each step left out."""
    world, traces = world_of("twowiki")
    print(f"twowiki: {len(traces):,} passages, {len(world.items)} questions, vectors kept")
    print("| method | R@2 | R@5 | all @5 | all @10 | ms | s to the first answer |\n|---|--:|--:|--:|--:|--:|--:|")
    cut = {label: LinkedPassages(lm, LinkedSettings(passages=PassagesSection(**other))) for label, other in WITHOUT.items()}
    for label, method in [*(method_of(lm, name) for name in names), *cut.items()]:
        *shares, ms, first = hit_rate(method, world, traces)
        print(f"| {label} | {' | '.join(f'{share:.3f}' for share in shares)} | {ms:.0f} | {first:.1f} |", flush=True)


def cost() -> None:
    """Print what reading takes, and what one passage more or less takes."""
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
    times = {"encode": [], "put in": [], "take out": []}
    for number in range(0, len(traces), len(traces) // 100):
        steps = {
            "encode": lambda at=number: minilm.encode([traces[at].text]),
            "take out": lambda at=number: graph.remove(at),
            "put in": lambda at=number: graph.add(at, title_of(traces[at]), traces[at].text),
        }
        for name, step in steps.items():
            begin = time.perf_counter()
            step()
            times[name].append((time.perf_counter() - begin) * 1e3)
    print("one passage, ms, median and 95 %: " + "; ".join(f"{k} {np.median(v):.3f}, {np.quantile(v, 0.95):.3f}" for k, v in times.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("choose", "show", "cost"))
    parser.add_argument("--preset", nargs="+", default=RAGS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    lm = load(load_spec("hippo-tiny"), threads=options.threads)
    if options.part == "choose":
        choose(lm)
    elif options.part == "show":
        show(lm, options.preset)
    else:
        cost()


if __name__ == "__main__":
    main()

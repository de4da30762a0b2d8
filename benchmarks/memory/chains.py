"""Whether all facts that an answer follows from are shown, in relations that no pattern knows; weights chosen on a development part.

    python benchmarks/memory/chains.py choose           weights of a path's score, on the development part
    python benchmarks/memory/chains.py show --split val     the relational memory beside rags; `--split test` once, at the end

`found`: the share of questions with all gold facts shown, or what tells them again; `right`: that a path's last name is the answer.
No model answers; the suite `semantic` (validation worlds) stands beside, so that what helps the one does not cost the other. One thread.
"""

import argparse
from itertools import product
from statistics import mean

from retrieval import method_of, opened

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Query
from hippo_core.methods.relational.clauses import Meaning
from hippo_core.methods.relational.graph import Graph
from hippo_core.methods.relational.paths import Search, Weights
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds

CHAINS = "folder:data/chains"
GRID = {"clauses": (0.0, 1.0, 3.0), "asked": (0.0, 1.0, 2.0), "near": (0.1, 0.3, 0.5), "covered": (0.0, 1.0)}
RAGS = tuple(f"{name}[k={k}]" for k in (3, 5) for name in ("rag_bm25", "rag_sum", "rag_graph"))


def gold_share(item, sources) -> float:
    """Whether all gold facts are among these, or what tells them again."""
    return float(set(item.gold_facts) <= {item.retold.get(source, source) for source in sources})


def path_recall(asked, similarity, weights: Weights) -> tuple[float, float]:
    """The share of questions whose best path holds all gold facts, and of those whose last name is the answer."""
    shown, right = [], []
    for world in asked:
        traces = passages_of(world)
        search = Search(Graph.of(traces), similarity, weights=weights)
        for item in world.items:
            best = next(iter(search.best(item.question)), None)
            shown.append(gold_share(item, [traces[number].source for number in best.statements]) if best else 0.0)
            right.append(float(best is not None and best.end in item.answers[0].casefold()))
    return mean(shown), mean(right)


def choose() -> None:
    """Every choice of four weights, best first by the mean of what is found on the two suites."""
    similarity = Meaning()
    parts = {"chains": list(worlds(CHAINS, n=120, split="val")), "semantic": list(worlds("semantic", n=60, split="val"))}
    print(f"| {' | '.join(GRID)} | chains, found | right | semantic, found | right |\n|{'--:|' * (len(GRID) + 4)}")
    rows = []
    for values in product(*GRID.values()):
        own = [path_recall(asked, similarity, Weights(**dict(zip(GRID, values, strict=True)))) for asked in parts.values()]
        rows.append((mean(shown for shown, _ in own), [*values, *(f"{share:.3f}" for pair in own for share in pair)]))
    for _, row in sorted(rows, key=lambda pair: -pair[0]):
        print(f"| {' | '.join(map(str, row))} |")


def show(split: str, n: int) -> None:
    """A row a method."""
    lm, suite = load(load_spec("hippo-tiny"), threads=1), get_suite(CHAINS)
    asked = list(worlds(CHAINS, n=n, split=split))
    kinds = sorted({(item.kind == "contradiction", item.hops) for world in asked for item in world.items})
    heads = [f"{'contested, ' if contested else ''}{hops} hops" for contested, hops in kinds]
    print(f"chains, {split}: {sum(len(world.items) for world in asked)} questions\n| method | shown | all | {' | '.join(heads)} |")
    print("|---|" + "--:|" * (2 + len(heads)))
    for name in ("memory/sgc_rss[encoder=minilm]", "memory/sgc_rss[encoder=minilm;relational.resolve=false]", *RAGS):
        _, method = method_of(lm, name)
        rows = []
        for world in asked:
            retrieve = opened(method, suite, world)
            for item in world.items:
                sources = [trace.source for trace in retrieve(Query(item.question, item.taught)).shown]
                rows.append(((item.kind == "contradiction", item.hops), gold_share(item, sources), len(sources)))
            method.forget()
        cells = [f"{mean(value for kind, value, _ in rows if kind == column):.2f}" for column in kinds]
        print(
            f"| {name} | {mean(count for *_, count in rows):.1f} | {mean(value for _, value, _ in rows):.3f} | {' | '.join(cells)} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("choose", "show"))
    parser.add_argument("--split", default="val", choices=("val", "test"))
    parser.add_argument("--n", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.what == "choose":
        choose()
    else:
        show(arguments.split, arguments.n)


if __name__ == "__main__":
    main()

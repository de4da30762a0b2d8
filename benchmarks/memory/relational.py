"""The relational memory's graph: what it costs to tell it up to 100,000 facts and to ask it, and how well it notices contradictions.

    python benchmarks/memory/relational.py cost [--facts 1000 --facts 10000 --facts 100000] [--no-hubs]
    python benchmarks/memory/relational.py contradictions
    python benchmarks/memory/relational.py gate
    python benchmarks/memory/relational.py hubs

`cost`: made-up people, firms and cities, told to a store in a temporary folder, beside networkx's MultiDiGraph of the same edges: seconds
to read and index, bytes in memory (tracemalloc) and on disk, milliseconds a question of two hops, medians. networkx reads no text: it is
given the edges, a name and a city, and lists the ways of two edges between them. All firms are in a few dozen cities, which become hubs;
`--no-hubs`: there are more cities where there are more firms.

`contradictions`: validation worlds of `semantic`. A statement contradicts when an earlier one of its world says another city of the same
firm, by the suite's labels, which the memory never sees. `when told`: what was noticed at once; `in the end`: with all that was told. What
a wrong supersession costs: in each question's world one firm that people disagree about is settled the other way, drawn at random.

`gate`: the same worlds told to stores with the gate and without: what was decided, the share of stored edges that repeat another, nodes and
edges of the graph for 1,000 facts, the edges of a world's largest name, ms a write with its share of a commit (medians of three rounds in
turn), how often the best path is the right one. Then without the fast-track: how many promotions that takes, two a world and cycle.

`hubs`: the same worlds told to one graph after each other, so that their people, firms and cities become one: how its largest names grow
with the gate and without, and the processor's time of a write (medians of five rounds in turn).
"""

import statistics
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Annotated

import networkx as nx
import typer

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Observation
from hippo_core.methods.relational import EDGES
from hippo_core.methods.relational.graph import Graph, StatementEdge, read
from hippo_core.methods.relational.paths import Search
from hippo_core.methods.relational.settings import RelationalSection, ReplaySection
from hippo_core.methods.relational.writing import EdgeWriter
from hippo_core.store import Identity, TraceStore
from hippo_core.store.trace import Statement
from hippo_core.suites import lexicon, settings_for
from hippo_core.suites.draw import cut, drawn_worlds
from hippo_core.suites.types import World

QUESTIONS, BLOCK, ITEMS = 20, 1000, 300
IDENTITY = Identity("benchmark", "0" * 64, "benchmark:SgcRss", EDGES)
app = typer.Typer(add_completion=False)


def facts(count: int, hubs: bool) -> Iterator[str]:
    """Half say for which firm a person works, half in which city a firm is: one of a few, or of one for twenty firms."""
    random = Random("facts")
    for number in range(count // 2):
        name = f"{lexicon.SURNAMES[number % len(lexicon.SURNAMES)]}{number}"
        city = random.choice(lexicon.CITIES)
        yield f"The {name} company is in {city if hubs else f'{city}{number // 20}'}."
        yield f"Person{number} works for the {name} company."


def median_ms(act, times: Sequence[object]) -> float:
    """Of acting on each."""
    took = []
    for call in times:
        begin = time.perf_counter()
        act(call)
        took.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(took)


def teach_texts(texts: Sequence[str], folder: Path) -> tuple[float, int]:
    """Seconds in which a store is told these, a thousand at a time, and the bytes of its file."""
    with TraceStore.create(folder, "s", IDENTITY) as store:
        writer, begin = EdgeWriter(RelationalSection(), store), time.perf_counter()
        for start in range(0, len(texts), BLOCK):
            with store.together():
                for number, text in enumerate(texts[start : start + BLOCK], start):
                    writer.write(Observation(Statement(f"f{number}", "w", text, number)))
        seconds = time.perf_counter() - begin
    return seconds, store.path.stat().st_size


@app.command()
def cost(facts_: Annotated[list[int], typer.Option("--facts")] = [1000, 10_000], hubs: bool = True) -> None:  # noqa: B006
    """Seconds, bytes and milliseconds a question."""
    print(
        "| facts | told, s | ms a fact | on disk, B a fact | graph, s | in memory, B a fact | ms a question | networkx: s | B a fact | ms |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for count in facts_:
        texts = list(facts(count, hubs))
        with tempfile.TemporaryDirectory() as folder:
            seconds, size = teach_texts(texts, Path(folder))
            with TraceStore.open(folder, "s", IDENTITY, read_only=True) as store:
                traces = store.traces("w")
        begin = time.perf_counter()
        graph = Graph.of(traces)
        built = time.perf_counter() - begin
        asked = [f"Person{number * (count // 2) // QUESTIONS}" for number in range(QUESTIONS)]
        search = Search(graph)
        ms = median_ms(lambda who, search=search: search.best(f"In which city does {who} work?"), asked)
        other, other_s = peer(graph.statements)
        other_ms = median_ms(
            lambda who, other=other: list(nx.all_simple_edge_paths(other, who.lower(), lexicon.CITIES[0].lower(), 2)), asked
        )
        del search, graph, other
        ours = allocated(lambda traces=traces: Graph.of(traces))
        read_once = [read(trace) for trace in traces]
        theirs = allocated(lambda read_once=read_once: peer(read_once))
        our_cells = f"{seconds:.2f} | {seconds / count * 1e3:.2f} | {size / count:.0f}"
        peer_cells = f"{other_s:.2f} | {theirs / count:.0f} | {other_ms:.2f}"
        print(f"| {count:,} | {our_cells} | {built:.2f} | {ours / count:.0f} | {ms:.1f} | {peer_cells} |")


def peer(statements: Sequence[StatementEdge]) -> tuple[nx.MultiDiGraph, float]:
    """The same edges in networkx, and the seconds to add them."""
    begin, graph = time.perf_counter(), nx.MultiDiGraph()
    for number, statement in enumerate(statements):
        if statement.relation:
            graph.add_edge(
                statement.head,
                statement.tail,
                relation=statement.relation.name,
                number=number,
                teller=statement.teller,
                time=statement.trace.time,
            )
    return graph, time.perf_counter() - begin


def allocated(build) -> int:
    """Bytes of what is built, and what it keeps."""
    tracemalloc.start()
    kept = build()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size


@app.command()
def contradictions() -> None:
    """How well contradictions are noticed, and what a wrong supersession costs."""
    head = ("profile", "statements", "contradict", "when told: precision", "recall", "in the end: precision", "recall")
    print(f"| {' | '.join((*head, 'path right', 'one settled wrongly'))} |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for profile in ("default", "hard"):
        worlds = list(cut(drawn_worlds("semantic", profile, ITEMS, 1337, "val", settings_for("semantic", profile)), ITEMS))
        pairs = [pair for world in worlds for pair in detections(world)]
        truth = sum(true for true, _, _ in pairs)
        scores = []
        for round_number in (1, 2):
            flagged = sum(pair[round_number] for pair in pairs)
            hits = sum(pair[0] and pair[round_number] for pair in pairs)
            scores += [f"{hits / flagged:.3f}" if flagged else "–", f"{hits / truth:.3f}"]
        right, flipped = (sum(gold_answered(worlds, wrongly)) / ITEMS for wrongly in (False, True))
        print(f"| {profile} | {len(pairs):,} | {truth} | {' | '.join(scores)} | {right:.3f} | {flipped:.3f} |")


def detections(world: World) -> Iterator[tuple[bool, bool, bool]]:
    """Of each fact whether it contradicts an earlier one, whether that was noticed when it was told, and in the end."""
    graph, tails = Graph(), dict[str, set[str]]()
    truth, at_once = [], []
    for fact, trace in zip(world.facts, passages_of(world), strict=True):
        site = fact.schema_fit and "city" in fact.slots
        before = tails.setdefault(fact.slots["firm"], set()) if site else set()
        truth.append(bool(before - {fact.slots.get("city", "")}))
        if site:
            before.add(fact.slots["city"])
        graph.add(read(trace))
        at_once.append(otherwise(graph, len(at_once), len(at_once)))
    yield from ((true, once, otherwise(graph, number, number)) for number, (true, once) in enumerate(zip(truth, at_once, strict=True)))


def otherwise(graph: Graph, number: int, until: int) -> bool:
    """Whether a statement is contested by one that was told before it."""
    tail = graph.statements[number].tail
    return graph.contested(number) and any(
        graph.statements[rival].tail != tail for rival in graph.competing_statements(number) if rival < until
    )


def gold_answered(worlds: Sequence[World], wrongly: bool = False, graphs: Sequence[Graph] | None = None) -> Iterator[bool]:
    """Of each question whether the best path is the right facts, all of them and no other."""
    for world, graph in zip(worlds, graphs or [Graph.of(passages_of(world)) for world in worlds], strict=True):
        traces, search = [edge.trace for edge in graph.statements], Search(graph)
        for item in world.items:
            if wrongly:
                flip(search.graph, Random(item.id))
            best = search.best(item.question)[:1]
            shown = {traces[number].source for path in best for number in path.statements}
            yield {item.retold.get(source, source) for source in shown} == set(item.gold_facts)
            for group in search.graph.groups.values():
                group.winner = None


def flip(graph: Graph, random: Random) -> None:
    """Settle one contested group for a statement that lost."""
    groups = [group for group in graph.groups.values() if graph.contested(group.numbers[0])]
    if groups:
        group = random.choice(groups)
        current = graph.statements[graph.current_statement(group.numbers[0])].tail
        group.winner = random.choice([number for number in group.numbers if graph.statements[number].tail != current])


SETTINGS = {
    "with the gate": {},
    "without": {"gate": {"enabled": False}},
    "threshold .5": {"gate": {"threshold": 0.5}},
    "threshold .7": {"gate": {"threshold": 0.7}},
    "no fast-track": {"schema_fasttrack": False},
}


@app.command()
def gate() -> None:
    """What the gate does to the store, to paths and to the time of a write."""
    for profile in ("default", "hard", "hedged"):
        worlds = list(cut(drawn_worlds("semantic", profile, ITEMS, 1337, "val", settings_for("semantic", profile)), ITEMS))
        print(f"semantic {profile}, {len(worlds)} worlds, {sum(len(world.facts) for world in worlds):,} facts, {ITEMS} questions")
        print("| | inserted | added | waiting | repeat | nodes | edges | largest | ms a write | path right |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        rounds = [{name: taught(worlds, RelationalSection.model_validate(section)) for name, section in SETTINGS.items()} for _ in range(3)]
        for name in SETTINGS:
            graphs, actions, _ = rounds[0][name]
            ms = statistics.median(section[name][2] for section in rounds)
            count = sum(actions.values())
            nodes = sum(len(graph.at) for graph in graphs) / count * 1e3
            edges = [edge for graph in graphs for edge in graph.statements if edge.relation and not edge.waits]
            largest = statistics.mean(max(map(len, graph.at.values()), default=0) for graph in graphs)
            repeated = statistics.mean(graph.repeated for graph in graphs)
            right = sum(gold_answered(worlds, graphs=graphs)) / ITEMS
            decided = f"{actions['insert']} | {actions['aggregate']} | {actions['route']}"
            grown = f"{repeated:.3f} | {nodes:.0f} | {len(edges) / count * 1e3:.0f} | {largest:.1f}"
            print(f"| {name} | {decided} | {grown} | {ms:.3f} | {right:.3f} |")
    worlds = list(cut(drawn_worlds("semantic", "default", ITEMS, 1337, "val", settings_for("semantic", "default")), ITEMS))
    print("default, no fast-track: promotions a world and paths that are right")
    print("| promotions | path right |")
    print("|--:|--:|")
    for most in range(0, 25, 2):
        graphs, _, _ = taught(worlds, RelationalSection(schema_fasttrack=False), most)
        print(f"| {most} | {sum(gold_answered(worlds, graphs=graphs)) / ITEMS:.3f} |")


@app.command()
def hubs() -> None:
    """How the largest names of one graph grow, and what a write costs."""
    worlds = cut(drawn_worlds("semantic", "default", ITEMS, 1337, "val", settings_for("semantic", "default")), ITEMS)
    texts = [fact.text for world in worlds for fact in world.facts]
    sections = {name: RelationalSection.model_validate(SETTINGS[name]) for name in ("with the gate", "without")}
    print("| facts told | | names | edges | of the largest name | of the largest hundredth, mean |\n|--:|---|--:|--:|--:|--:|")
    for count in (90, 360, len(texts)):
        for name, section in sections.items():
            graph, _ = pooled(texts[:count], section)
            sizes = sorted(map(len, graph.at.values()), reverse=True)
            edges = sum(bool(edge.relation) and not edge.waits for edge in graph.statements)
            few = sizes[: max(1, len(sizes) // 100)]
            print(f"| {count:,} | {name} | {len(sizes)} | {edges:,} | {sizes[0]} | {statistics.mean(few):.1f} |")
    rounds = [{name: pooled(texts, section)[1] for name, section in sections.items()} for _ in range(5)]
    print("ms a write: " + ", ".join(f"{name} {statistics.median(round_ms[name] for round_ms in rounds):.3f}" for name in sections))


def pooled(texts: Sequence[str], section: RelationalSection) -> tuple[Graph, float]:
    """The graph of texts that are all told to one world, and the processor's ms a write."""
    with tempfile.TemporaryDirectory() as folder, TraceStore.create(Path(folder), "s", IDENTITY) as store:
        writer, begin = EdgeWriter(section, store), time.process_time()
        with store.together():
            for number, text in enumerate(texts):
                writer.write(Observation(Statement(f"f{number}", "w", text, number)))
        ms = (time.process_time() - begin) * 1e3 / len(texts)
        return Graph.of(store.traces("w")), ms


def taught(worlds: Sequence[World], section: RelationalSection, promoted: int | None = None) -> tuple[list[Graph], Counter[str], float]:
    """The graphs of worlds as a store has them, what was decided, and ms a write; `promoted`: edges that are promoted afterwards."""
    with tempfile.TemporaryDirectory() as folder, TraceStore.create(Path(folder), "s", IDENTITY) as store:
        writer, actions, begin = EdgeWriter(section, store), Counter[str](), time.perf_counter()
        for world in worlds:
            with store.together():
                actions.update(writer.write(Observation.of(fact)).action for fact in world.facts)
        ms = (time.perf_counter() - begin) * 1e3 / actions.total()
        if promoted is not None:
            for world in worlds:
                list(writer.replay(world.id, ReplaySection(max_items=promoted)))
        return [Graph.of(store.traces(world.id)) for world in worlds], actions, ms


@app.callback(invoke_without_command=True)
def both(context: typer.Context) -> None:
    """Both, small, as `make bench` runs it."""
    if context.invoked_subcommand is None:
        cost([1000, 10_000])
        contradictions()


if __name__ == "__main__":
    app()

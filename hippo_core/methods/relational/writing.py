"""Writing: a statement is read as an edge, and the gate says whether it is inserted at once or pending; a replay promotes pending ones.

an edge that the graph has                      -> aggregate: one more attestation of it
one that fits its schema with enough confidence -> insert: an edge of the graph
others, and those that join no two names        -> route: an episodic trace, which can be recalled, and promoted
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hippo_core.methods.base import Observation, replay_row
from hippo_core.methods.relational.edge import Edge, EdgeTerms, add_attestation, confidence
from hippo_core.methods.relational.graph import Graph, StatementEdge, TraceReader, read
from hippo_core.methods.relational.settings import RelationalSection, ReplaySection
from hippo_core.store.trace import Action, Decision, Statement, Trace

if TYPE_CHECKING:
    from hippo_core.store import TraceStore


class EdgeWriter:
    """Write statements to a store one by one, and promote pending ones.

    The graph of a world is built from the store when first needed, and again after something else changed the store; `make_reader` makes
    the reader of its statements.
    """

    def __init__(self, settings: RelationalSection, store: "TraceStore", make_reader: Callable[[], TraceReader] = lambda: read) -> None:
        self.settings, self.store, self.make_reader = settings, store, make_reader
        self._graphs: dict[str, Graph] = {}
        self._seen = store.changes

    def write(self, observation: Observation) -> Decision:
        """Write one statement, in one transaction. Returns the decision about it."""
        graph, statement = self._graph(observation.statement.world), observation.statement
        new_edge = graph.read_trace(observation.trace())
        decision, known = self._decided(graph, new_edge)
        with self.store.together():
            if known is not None:
                self._add_attestation(graph, known, new_edge)
                identifier = graph.statements[known].trace.id
            else:
                salience = max(0.0, decision.S) if decision.raw else new_edge.trace.salience
                trace = replace(new_edge.trace, payload=Edge((new_edge.attestation,), decision.action == "route"), salience=salience)
                [identifier] = self.store.append([trace])
                graph.add(replace(new_edge, trace=replace(trace, id=identifier)))
            decision = replace(decision, statement=statement, trace_id=identifier, told=observation.told)
            self.store.log([decision])
        self._seen = self.store.changes
        return decision

    def _decided(self, graph: Graph, new_edge: StatementEdge) -> tuple[Decision, int | None]:
        """The decision, and the number of the statement that this one repeats, if any."""
        gate, key, statement = self.settings.gate, new_edge.key, new_edge.trace
        if not gate.enabled:
            is_pending = key is not None and not self.settings.schema_fasttrack
            return _decision(statement, "route" if is_pending else "insert"), None
        if key is None:
            return _decision(statement, "route"), None
        terms = graph.terms(new_edge, confidence(new_edge.attestations))
        if (known := graph.edges.get(key)) is not None:
            return _decision(statement, "aggregate", terms), known
        if self.settings.schema_fasttrack and terms.passes(gate.threshold):
            return _decision(statement, "insert", terms), None
        known = graph.pending.get(key)
        return _decision(statement, "route" if known is None else "aggregate", terms), known

    def _add_attestation(self, graph: Graph, number: int, new_edge: StatementEdge) -> None:
        trace = graph.statements[number].trace
        edge = replace(trace.payload, attestations=add_attestation(trace.payload.attestations, new_edge.attestation))
        self.store.retell(trace, edge)
        graph.renew(number, replace(trace, payload=edge, evidence=trace.evidence + 1))

    def replay(self, world: str, replayed: ReplaySection) -> Iterator[dict[str, object]]:
        """Weigh pending edges again, those of most evidence first, and promote those that pass now; a row for each edge and cycle."""
        for cycle in range(1, (replayed.cycles if replayed.enabled else 0) + 1):
            graph = self._graph(world)
            drawn = self._pending(graph)[: replayed.max_items]
            with self.store.maintenance("replay"):
                rows = [self._rehearsed(graph, number, terms, cycle) for number, terms in drawn]
            self._seen = self.store.changes
            yield from rows

    def _pending(self, graph: Graph) -> list[tuple[int, EdgeTerms]]:
        """The pending edges, by number, and their terms now, highest S first, without those that the graph has."""
        numbers = [number for number, statement in enumerate(graph.statements) if statement.is_pending and statement.relation]
        weighed = [
            (number, graph.terms(graph.statements[number], confidence(graph.statements[number].attestations), now=False))
            for number in numbers
        ]
        return sorted((row for row in weighed if row[1].novelty), key=lambda row: -row[1].score)

    def _rehearsed(self, graph: Graph, number: int, terms: EdgeTerms, cycle: int) -> dict[str, object]:
        begin, trace = time.perf_counter(), graph.statements[number].trace
        promoted, after = self.passes(terms), trace
        if promoted:
            by = max(0.0, terms.score - trace.salience)
            after = replace(trace, uses=trace.uses + 1, salience=trace.salience + by)
            self.store.use([trace.id])
            self.store.raise_salience([trace.id], by)
            graph.renew(number, after)
        return replay_row(cycle, trace, promoted, (time.perf_counter() - begin) * 1e3, after=after.salience)

    def passes(self, terms: EdgeTerms) -> bool:
        """Whether a pending edge is promoted; without a gate each is."""
        return not self.settings.gate.enabled or terms.passes(self.settings.gate.threshold)

    def _graph(self, world: str) -> Graph:
        if self.store.changes != self._seen:
            self._graphs, self._seen = {}, self.store.changes
        if world not in self._graphs:
            self._graphs[world] = Graph.of(self.store.traces(world), self.make_reader())
        return self._graphs[world]


def _decision(trace: Trace, action: Action, terms: EdgeTerms | None = None) -> Decision:
    """About the statement of a trace; without terms nothing was weighed."""
    statement = Statement(trace.source, trace.world, trace.text, trace.time)
    return Decision(statement, terms.score, terms.contributions, terms.raw, action) if terms else Decision(statement, 0.0, {}, {}, action)

"""Writing: a statement is read as an edge, and the gate says whether it becomes one at once or waits; a replay promotes what waits.

what is told again by the words of its edge       -> aggregate: one more telling of the edge
what fits its schema and is sure enough for that  -> insert: an edge of the graph
what is not, and what joins no two names          -> route: an episodic trace, which can be recalled, and promoted
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hippo_core.methods.base import Observation
from hippo_core.methods.relational.edge import Edge, EdgeTerms, confidence, retold
from hippo_core.methods.relational.graph import Graph, Listen, StatementEdge, read
from hippo_core.methods.relational.settings import RelationalSection, ReplaySection
from hippo_core.store.trace import Action, Decision, Statement, Trace

if TYPE_CHECKING:
    from hippo_core.store import TraceStore


class EdgeWriter:
    """Write statements to a store one by one, and promote what waits there.

    The graph of a world is made from the store when it is first needed, and again after something else has changed the store; `listen`
    makes what reads the statements of one.
    """

    def __init__(self, settings: RelationalSection, store: "TraceStore", listen: Callable[[], Listen] = lambda: read) -> None:
        self.settings, self.store, self.listen = settings, store, listen
        self._graphs: dict[str, Graph] = {}
        self._seen = store.changes

    def write(self, observation: Observation) -> Decision:
        """Write one statement, in one transaction. Returns the decision about it."""
        graph, statement = self._graph(observation.statement.world), observation.statement
        told = graph.listen(observation.trace())
        decision, known = self._decided(graph, told)
        with self.store.together():
            if known is not None:
                self._retell(graph, known, told)
                identifier = graph.told[known].trace.id
            else:
                salience = max(0.0, decision.S) if decision.raw else told.trace.salience
                trace = replace(told.trace, payload=Edge((told.telling,), decision.action == "route"), salience=salience)
                [identifier] = self.store.append([trace])
                graph.add(replace(told, trace=replace(trace, id=identifier)))
            decision = replace(decision, statement=statement, trace_id=identifier, told=observation.told)
            self.store.log([decision])
        self._seen = self.store.changes
        return decision

    def _decided(self, graph: Graph, told: StatementEdge) -> tuple[Decision, int | None]:
        """The decision, and the number of the statement that it is told again to, if any."""
        gate, key, statement = self.settings.gate, told.key, told.trace
        if not gate.enabled:
            waits = key is not None and not self.settings.schema_fasttrack
            return _decision(statement, "route" if waits else "insert"), None
        if key is None:
            return _decision(statement, "route"), None
        terms = graph.terms(told, confidence(told.tellings))
        if (known := graph.edges.get(key)) is not None:
            return _decision(statement, "aggregate", terms), known
        if self.settings.schema_fasttrack and terms.passes(gate.threshold):
            return _decision(statement, "insert", terms), None
        known = graph.waiting.get(key)
        return _decision(statement, "route" if known is None else "aggregate", terms), known

    def _retell(self, graph: Graph, number: int, told: StatementEdge) -> None:
        trace = graph.told[number].trace
        edge = replace(trace.payload, tellings=retold(trace.payload.tellings, told.telling))
        self.store.retell(trace, edge)
        graph.renew(number, replace(trace, payload=edge, evidence=trace.evidence + 1))

    def replay(self, world: str, replayed: ReplaySection) -> Iterator[dict[str, object]]:
        """Weigh again what waits, what has the most evidence first, and promote what passes by now; a row for each edge and cycle."""
        for cycle in range(1, (replayed.cycles if replayed.enabled else 0) + 1):
            graph = self._graph(world)
            drawn = self._waiting(graph)[: replayed.max_items]
            with self.store.maintenance("replay"):
                rows = [self._rehearsed(graph, number, terms, cycle) for number, terms in drawn]
            self._seen = self.store.changes
            yield from rows

    def _waiting(self, graph: Graph) -> list[tuple[int, EdgeTerms]]:
        """The edges that wait, by number, and how they are weighed now, highest S first, but for those that the graph has."""
        numbers = [number for number, told in enumerate(graph.told) if told.waits and told.relation]
        weighed = [(number, graph.terms(graph.told[number], confidence(graph.told[number].tellings), now=False)) for number in numbers]
        return sorted((one for one in weighed if one[1].novelty), key=lambda one: -one[1].score)

    def _rehearsed(self, graph: Graph, number: int, terms: EdgeTerms, cycle: int) -> dict[str, object]:
        begin, trace = time.perf_counter(), graph.told[number].trace
        promoted, after = self.passes(terms), trace
        if promoted:
            by = max(0.0, terms.score - trace.salience)
            after = replace(trace, uses=trace.uses + 1, salience=trace.salience + by)
            self.store.use([trace.id])
            self.store.raise_salience([trace.id], by)
            graph.renew(number, after)
        return {
            "cycle": cycle,
            "world": trace.world,
            "trace_id": trace.id,
            "cue": trace.text,
            "recalled": float(promoted),
            "salience_before": trace.salience,
            "salience_after": after.salience,
            "merged": 0.0,
            "ms": (time.perf_counter() - begin) * 1e3,
        }

    def passes(self, terms: EdgeTerms) -> bool:
        """Whether an edge that waits is promoted; without a gate each is."""
        return not self.settings.gate.enabled or terms.passes(self.settings.gate.threshold)

    def _graph(self, world: str) -> Graph:
        if self.store.changes != self._seen:
            self._graphs, self._seen = {}, self.store.changes
        if world not in self._graphs:
            self._graphs[world] = Graph.of(self.store.traces(world), self.listen())
        return self._graphs[world]


def _decision(trace: Trace, action: Action, terms: EdgeTerms | None = None) -> Decision:
    """About the statement of a trace; without terms nothing was weighed."""
    statement = Statement(trace.source, trace.world, trace.text, trace.time)
    return Decision(statement, terms.score, terms.contributions, terms.raw, action) if terms else Decision(statement, 0.0, {}, {}, action)

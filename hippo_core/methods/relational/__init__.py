"""SGC-RSS, the relational memory: statements are read as edges between names, and a question is answered by a path.

    read -> mentions -> relation -> gate -> graph          question -> names -> path -> one block, in the path's order

Edges of low confidence are kept as pending episodic traces, until a replay promotes them (writing.py). Where no path is found the most
similar statements are shown, as a rag does. Passages that open with their titles are ranked by passages.py, and the k best are one block.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from hippo_core.methods.base import Memory, Observation, Picture, Query, Retrieve, Retrieved, in_order
from hippo_core.methods.rag.rankers import Ordered, likest
from hippo_core.methods.relational.attribution import plainly
from hippo_core.methods.relational.edge import EdgeCodec
from hippo_core.methods.relational.settings import SgcRssSettings
from hippo_core.methods.versions import Versions, current_first
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Decision, Trace

if TYPE_CHECKING:
    from hippo_core.methods.relational.clauses import TextSimilarity
    from hippo_core.methods.relational.graph import Graph, TraceReader
    from hippo_core.methods.relational.learned import AnyPath, EitherSearch, LearnedSearch
    from hippo_core.methods.relational.passages import LinkedPassages
    from hippo_core.methods.relational.paths import Search
    from hippo_core.methods.relational.statement_reader import StatementReader
    from hippo_core.methods.relational.writing import EdgeWriter
    from hippo_core.store import TraceStore

EDGES = EdgeCodec()


class SgcRss(Memory):
    """The relational memory of a loaded model."""

    Settings = SgcRssSettings
    steps = ("teach", "replay")
    says_confidence = True
    weights = ("relational/path_confidence.json", "minilm/statements.*", "minilm/tags.*", "minilm/cuts.*")
    columns: ClassVar = {"test": ("path_hops", "duplicate_rate", "nodes_per_1k", "edges_per_1k")}
    test_settings = (*Memory.test_settings, "relational.search", "relational.resolve", "relational.wording", "relational.passages")
    replay_settings = ("replay",)

    _writer: "EdgeWriter | None" = None
    _graph: "Graph | None" = None
    _learned: "tuple[list, LearnedSearch] | None" = None

    @property
    def codec(self) -> EdgeCodec:
        return EDGES

    @property
    def replay_cycles(self) -> int:
        return self.settings.replay.cycles if self.settings.replay.enabled else 0

    def write(self, observation: Observation, store: "TraceStore", calibration: Mapping[str, Any] | None = None) -> Decision:
        """See `Memory`."""
        return self._written(store).write(observation)

    def replay(self, world: str, store: "TraceStore") -> Iterator[dict[str, object]]:
        """Weigh pending edges again, and promote those that pass now, which `recalled` says; no question is seen, nothing trained."""
        return self._written(store).replay(world, self.settings.replay)

    def _written(self, store: "TraceStore") -> "EdgeWriter":
        """The writer of a store. It is reused until another store is written to."""
        from hippo_core.methods.relational.writing import EdgeWriter

        if self._writer is None or self._writer.store is not store:
            self._writer = EdgeWriter(self.settings.relational, store, self._make_reader)
        return self._writer

    def forget(self) -> None:
        super().forget()
        self._writer = self._graph = self._learned = None
        self.__dict__.pop("_linked", None)

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        if self.settings.traces == "off":
            return lambda query: Retrieved((), ())
        stored = {trace.source for trace in traces}  # not repeated statements, which are attestations of an edge

        def kept(query: Query) -> Query:
            return replace(query, taught=tuple(source for source in query.taught if source in stored))

        if ranked := self._passages(traces, questions):
            none = {"path_hops": 0.0, "duplicate_rate": 0.0}
            return lambda query: replace(ranked(kept(query)), columns=none, together=bool(query.taught))
        search: Any = self.search(traces)
        measured = {"duplicate_rate": search.graph.repeated, **search.graph.growth}
        index, episodic = WorldIndex(self.lm, traces, tuple(questions)), likest(self.lm, self.settings.encoder)

        def retrieve(query: Query) -> Retrieved:
            begin, query = time.perf_counter(), kept(query)
            taught = set(query.taught)
            paths = search.best(query.text, {number for number, trace in enumerate(traces) if trace.source in taught})
            path_traces = [traces[number] for path in paths for number in path.statements]
            ordered = episodic.order(index, query) if query.taught else Ordered(())
            others = [index.passages[query.taught[position]] for position in ordered.positions]
            ranking = tuple({trace.id: trace for trace in (*path_traces, *others)}.values())
            best = paths[0] if paths else None
            by = search.of(best) if best else search
            versions = Versions(range(len(others)), (), 0.0)
            if not best and self.settings.fitted:
                versions = current_first(self.lm, query, others, ordered.scores, self.settings.decoding)
            likest_traces = in_order([others[position] for position in versions.order[: self.settings.k]])
            shown = tuple(traces[number] for number in best.statements) if best else likest_traces
            return Retrieved(
                shown,
                ranking,
                recall_ms=(time.perf_counter() - begin) * 1e3,
                confidence=by.confidence(query.text, best) if best else None,
                columns={"path_hops": float(len(best.statements)) if best else 0.0, **measured},
                together=best is not None,
                restated=self._restated(by, best, shown, query.text),
                reworded=self.settings.relational.wording == "plain",
                answer=_called(search.names[best.end], traces[best.statements[-1]].text) if best else "",
                replaced=tuple(traces[number] for number in getattr(best, "lost", ())) or versions.replaced,
                computed_tokens=versions.tokens,
            )

        return retrieve

    @cached_property
    def similarity(self) -> "TextSimilarity":
        """The similarity of words, with the vectors computed so far."""
        from hippo_core.methods.relational.clauses import Meaning, TextSimilarity

        return Meaning(str(self.lm.device)) if self.settings.encoder == "minilm" else TextSimilarity()

    def search(self, traces: Sequence[Trace]) -> "Search | LearnedSearch | EitherSearch":
        """What finds paths among these traces."""
        from hippo_core.methods.relational.graph import Graph

        relational, settings = self.settings.relational, self.settings.relational.search
        self._graph = (self._graph or Graph(read_trace=self._make_reader())).follow(traces)
        patterns = None
        if relational.reading != "learned":
            from hippo_core.methods.relational.paths import Search

            patterns = Search(self._graph, self.similarity, relational.resolve, settings.hops, settings.beam, encoder=self.settings.encoder)
        if patterns and not self.settings.fitted:
            return patterns
        from hippo_core.methods.relational.learned import EitherSearch, LearnedSearch

        key = [(trace.id, trace.text, trace.payload) for trace in traces]
        if self._learned is None or self._learned[0] != key:
            self._learned = key, LearnedSearch(self._reader, self._graph, relational.resolve, settings.hops, settings.beam)
        return EitherSearch(patterns, self._learned[1]) if patterns else self._learned[1]

    @property
    def _reader(self) -> "StatementReader":
        from hippo_core.methods.relational.statement_reader import fitted_reader

        return fitted_reader(str(self.lm.device))

    def _make_reader(self) -> "TraceReader":
        """What reads the statements of a graph, anew."""
        if self.settings.relational.reading != "learned":
            from hippo_core.methods.relational.graph import read

            return read
        from hippo_core.methods.relational.learned import LearnedTraceReader

        return LearnedTraceReader(self._reader)

    def pictures(self, question: str, best: Trace | None, traces: Sequence[Trace]) -> Sequence[Picture]:
        """The path that answers a question, with the statements that lost against it."""
        if self.settings.traces == "off" or self._passages(traces):
            return ()
        from hippo_core.methods.relational.pictures import drawn

        search: Any = self.search(traces)
        return [drawn(search, path) for path in search.best(question)[:1]]

    def _restated(self, search: Any, best: "AnyPath | None", shown: Sequence[Trace], question: str) -> str:
        """A path in the words that `relational.wording` asks for; "" where its statements are shown as they are. These do not say until
        when they held, so a question about a time gets the name where the path ends."""
        wording = self.settings.relational.wording
        if best is None or wording == "own" or (wording == "either" and search.known(question) and not search.timed(question)[1]):
            return ""
        if wording == "plain":
            return " ".join(plainly(trace.text) for trace in shown)
        return f"{question.rstrip(' ?.')}: {search.names[best.end]}."

    def _passages(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve | None:
        """What ranks these where they are passages."""
        from hippo_core.methods.relational.passages import are_passages

        return self._linked.open(traces, questions) if are_passages(traces) else None

    @cached_property
    def _linked(self) -> "LinkedPassages":
        """What ranks passages, with what it has read of them so far."""
        from hippo_core.methods.relational.passages import LinkedPassages, LinkedSettings

        encoder, settings = "minilm" if self.settings.encoder == "minilm" else None, self.settings
        return LinkedPassages(self.lm, LinkedSettings(k=settings.k, encoder=encoder, passages=settings.relational.passages))


def _called(name: str, text: str) -> str:
    """A name as a statement calls it: Oslo, the Marlow company."""
    noun = re.search(rf"\b[Tt]he {re.escape(name)} (?P<noun>[a-z]+)", text)
    return f"the {name} {noun['noun']}" if noun else name

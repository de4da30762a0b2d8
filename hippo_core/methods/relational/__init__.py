"""SGC-RSS, the relational memory: statements are read as edges between names, and a question is answered by a path.

    listen -> mentions -> relation -> graph          question -> names -> path -> one block, in the path's order

Where no path is found the statements that are most like the question are shown, as a rag does. Passages that open with their titles are
no statements: these are ranked by their likeness to the question, by its names and by who names whom, and the k best are one block.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from hippo_core.methods.base import Memory, Picture, Query, Retrieve, Retrieved, in_order
from hippo_core.methods.rag.rankers import Grams, Sum, SumSettings
from hippo_core.methods.relational.settings import SgcRssSettings
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.methods.relational.likeness import Likeness
    from hippo_core.methods.relational.paths import Search


class SgcRss(Memory):
    """The relational memory of a loaded model."""

    Settings = SgcRssSettings
    says_confidence = True
    columns: ClassVar = {"test": ("path_hops",)}
    test_settings = (*Memory.test_settings, "relational.search", "relational.resolve", "relational.passages")

    @property
    def writes(self) -> bool:
        return super().writes and self.settings.traces == "semantic"

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        if self.settings.traces == "off":
            return lambda query: Retrieved((), ())
        if ranked := self._passages(traces, questions):
            return lambda query: replace(ranked(query), columns={"path_hops": 0.0}, together=bool(query.taught))
        search = self._search(traces)
        index, episodic = WorldIndex(self.lm, traces, tuple(questions)), self._episodic()

        def retrieve(query: Query) -> Retrieved:
            begin = time.perf_counter()
            taught = set(query.taught)
            paths = search.best(query.text, {number for number, trace in enumerate(traces) if trace.source in taught})
            found = [traces[number] for path in paths for number in path.statements]
            order = episodic.order(index, query).positions if query.taught else ()
            others = [index.passages[query.taught[position]] for position in order]
            ranking = tuple({trace.id: trace for trace in (*found, *others)}.values())
            best = paths[0] if paths else None
            shown = tuple(traces[number] for number in best.statements) if best else in_order(others[: self.settings.k])
            return Retrieved(
                shown,
                ranking,
                recall_ms=(time.perf_counter() - begin) * 1e3,
                confidence=best.confidence if best else None,
                columns={"path_hops": float(len(best.statements)) if best else 0.0},
                together=best is not None,
            )

        return retrieve

    @cached_property
    def alike(self) -> "Likeness":
        """How alike words are, with the vectors of those that were met."""
        from hippo_core.methods.relational.likeness import Likeness, Meaning

        return Meaning(str(self.lm.device)) if self.settings.encoder == "minilm" else Likeness()

    def _search(self, traces: Sequence[Trace]) -> "Search":
        from hippo_core.methods.relational.graph import Graph
        from hippo_core.methods.relational.paths import Search

        relational = self.settings.relational
        return Search(Graph.of(traces), self.alike, relational.resolve, relational.search.hops, relational.search.beam)

    def pictures(self, question: str, best: Trace | None, traces: Sequence[Trace]) -> Sequence[Picture]:
        """The path that answers a question, with the statements that lost against it."""
        if self.settings.traces == "off" or self._passages(traces):
            return ()
        from hippo_core.methods.relational.pictures import drawn

        search = self._search(traces)
        return [drawn(search.graph, path) for path in search.best(question)[:1]]

    def _passages(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve | None:
        """What ranks these where they are passages."""
        from hippo_core.methods.relational.passages import LinkedPassages, LinkedSettings, are_passages

        encoder, settings = "minilm" if self.settings.encoder == "minilm" else None, self.settings
        chosen = LinkedSettings(k=settings.k, encoder=encoder, passages=settings.relational.passages)
        return LinkedPassages(self.lm, chosen).open(traces, questions) if are_passages(traces) else None

    def _episodic(self) -> Any:
        """What ranks statements by themselves."""
        if self.settings.encoder == "minilm":
            return Sum(self.lm, SumSettings(encoder="minilm"))
        return Grams(self.lm, Grams.Settings())

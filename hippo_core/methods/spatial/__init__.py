"""SMPD, the spatial memory: statements are read as places and the steps between them, and a question is answered from the map.

    statements -> links, steps of a walk -> map          question -> places, what is asked -> A* -> a sentence, in the words of a told route

The map finds the way, the model says it: what reaches it is one sentence in the place of the statements that it rests on, and it is asked
for that sentence (`wording`). Where the map has no answer, the statements that are most like the question are shown, as a rag does.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hippo_core.methods.base import Memory, Picture, Query, Retrieve, Retrieved, in_order
from hippo_core.methods.rag.rankers import Grams, Sum, SumSettings
from hippo_core.methods.spatial.settings import SmpdSettings
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.methods.spatial.answers import Said


class Smpd(Memory):
    """The spatial memory of a loaded model."""

    Settings = SmpdSettings
    says_confidence = True
    columns: ClassVar = {"test": ("planned_steps", "places", "links", "plan_ms")}
    test_settings = (*Memory.test_settings, "spatial.path_integration", "spatial.particles", "spatial.keep", "spatial.wording")

    @property
    def writes(self) -> bool:
        return super().writes and self.settings.traces == "spatial"

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        from hippo_core.methods.spatial.answers import Atlas

        if self.settings.traces == "off":
            return lambda query: Retrieved((), ())
        index, likest = WorldIndex(self.lm, traces, tuple(questions)), self._likest()
        atlases: dict[tuple[str, ...], Atlas] = {}

        def retrieve(query: Query) -> Retrieved:
            begin = time.perf_counter()
            passages = [index.passages[source] for source in query.taught]
            if query.taught not in atlases:
                atlases[query.taught] = Atlas([trace.text for trace in passages], self.settings.spatial)
            atlas = atlases[query.taught]
            planning = time.perf_counter()
            said = atlas.say(query.text)
            plan_ms = (time.perf_counter() - planning) * 1e3
            found = [passages[number] for number in said.told] if said else []
            order = likest.order(index, query).positions if query.taught else ()
            others = [passages[position] for position in order]
            links = sum(evidence.open > 0 for evidence in atlas.map.links.values())
            return Retrieved(
                tuple(found) if said else in_order(others[: self.settings.k]),
                tuple({trace.id: trace for trace in (*found, *others)}.values()),
                recall_ms=(time.perf_counter() - begin) * 1e3,
                confidence=1.0 if said and (said.answer or said.question) else None,
                columns={
                    "planned_steps": float(len(said.way.words)) if said and said.way else 0.0,
                    "places": float(len(atlas.map.steps)),
                    "links": float(links),
                    "plan_ms": plan_ms,
                },
                restated=self._restated(said, query.text),
                answer=said.answer if said else "",
                rephrased=said.question if said and self.settings.spatial.wording == "route" else "",
            )

        return retrieve

    def _restated(self, said: "Said | None", question: str) -> str:
        if said is None or not said.answer:
            return ""
        return said.sentence if self.settings.spatial.wording == "route" else f"{question.rstrip(' ?.')}: {said.answer}."

    def pictures(self, question: str, best: Trace | None, traces: Sequence[Trace]) -> Sequence[Picture]:
        """The remembered map, with the way that answers a question."""
        from hippo_core.methods.spatial.answers import Atlas
        from hippo_core.methods.spatial.pictures import drawn

        atlas = Atlas([trace.text for trace in traces], self.settings.spatial)
        return [drawn(atlas, atlas.say(question))] if self.settings.traces == "spatial" and atlas.map.links else ()

    def _likest(self) -> Any:
        """What ranks statements by themselves."""
        if self.settings.encoder == "minilm":
            return Sum(self.lm, SumSettings(encoder="minilm"))
        return Grams(self.lm, Grams.Settings())

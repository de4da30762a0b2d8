"""SMPD, the spatial memory: statements are read as places and the steps between them, and a question is answered from the map.

    statements -> links, steps of a walk -> map          question -> places, what is asked -> A* -> a sentence, in the words of a told route

A sleep makes macros of the routes that were told (macros.py), which stand for several steps of a plan.

The map finds the way, the model says it: what reaches it is one sentence in the place of the statements that it rests on, and it is asked
for that sentence (`wording`). Where the map has no answer, the statements that are most like the question are shown, as a rag does.
"""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hippo_core.methods.base import Memory, Picture, Query, Retrieve, Retrieved, in_order
from hippo_core.methods.rag.rankers import likest
from hippo_core.methods.spatial.policy import HabitsCodec
from hippo_core.methods.spatial.settings import SmpdSettings
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.methods.spatial.answers import MapAnswer, MapAnswerer
    from hippo_core.methods.spatial.learned import PlaceReader
    from hippo_core.store import TraceStore
    from hippo_core.store.trace import Decision

HABITS = HabitsCodec()
TRIP = ("steps", "decisions", "macro_steps")  # of a way that is asked for, as it is gone: moves and decisions, decisions, moves in macros
GATE = ("edges_per_1k", "gate_inserted", "gate_aggregated", "gate_blocked", "gate_dropped")


class Smpd(Memory):
    """The spatial memory of a loaded model."""

    Settings = SmpdSettings
    says_confidence = True
    steps = ("teach", "replay")
    weights = ("minilm/places.*",)
    columns: ClassVar = {"test": ("planned_steps", "places", "links", "plan_ms", *TRIP, *GATE)}
    test_settings = (*Memory.test_settings, "spatial.wording", "spatial.macros")
    replay_settings = ("replay", "spatial.path_integration", "spatial.particles", "spatial.keep", "spatial.gate", "spatial.reading")

    @property
    def codec(self) -> HabitsCodec:
        return HABITS

    @property
    def replay_cycles(self) -> int:
        return self.settings.replay.cycles if self.settings.replay.enabled else 0

    @property
    def writes(self) -> bool:
        return super().writes and self.settings.traces == "spatial"

    def entangles(self, decisions: "Sequence[Decision]") -> bool:
        """Habits are learnt from all routes together."""
        return True

    def replay(self, world: str, store: "TraceStore") -> Iterator[dict[str, object]]:
        """Replay the routes that were told, on the map as it is now, and learn macros from those that succeed, which `recalled` says. No
        question is seen."""
        from hippo_core.methods.spatial.answers import MapAnswerer
        from hippo_core.methods.spatial.macros import Trajectory, replayed
        from hippo_core.methods.spatial.policy import learn
        from hippo_core.methods.spatial.reading import Route

        for cycle in range(1, self.replay_cycles + 1):
            traces = store.traces(world)
            atlas = MapAnswerer([trace.text for trace in traces], self.settings.spatial, reader=self._reader())
            told = [(number, one) for number, one in atlas.told if isinstance(one, Route)]
            drawn = told[max(0, len(told) - most) :] if (most := self.settings.replay.max_items) is not None else told
            rehearsed = list[tuple[Trace, Trajectory, float]]()
            for number, route in drawn:
                begin = time.perf_counter()
                if one := replayed(route, atlas.planner):
                    rehearsed.append((traces[number], one, (time.perf_counter() - begin) * 1e3))
            if not rehearsed:
                return
            habits = learn([one for _, one, _ in rehearsed])
            kept = {trace.id: None for trace in traces if trace.payload} | {rehearsed[-1][0].id: habits}
            with store.maintenance("replay"):
                store.use([trace.id for trace, one, _ in rehearsed if one.leads])
                store.update_payloads(kept)
            for trace, one, ms in rehearsed:
                same = {"salience_before": trace.salience, "salience_after": trace.salience, "merged": 0.0, "ms": ms}
                yield {"cycle": cycle, "world": world, "trace_id": trace.id, "cue": trace.text, "recalled": float(one.leads), **same}

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        if self.settings.traces == "off":
            return lambda query: Retrieved((), ())
        index, ranker = WorldIndex(self.lm, traces, tuple(questions)), likest(self.lm, self.settings.encoder)
        atlases: dict[tuple[str, ...], MapAnswerer] = {}

        def retrieve(query: Query) -> Retrieved:
            begin = time.perf_counter()
            passages = [index.passages[source] for source in query.taught]
            if query.taught not in atlases:
                atlases[query.taught] = self.atlas(passages)
            atlas = atlases[query.taught]
            planning = time.perf_counter()
            said = atlas.say(query.text)
            plan_ms = (time.perf_counter() - planning) * 1e3
            found = [passages[number] for number in said.told] if said else []
            order = ranker.order(index, query).positions if query.taught else ()
            others = [passages[position] for position in order]
            return Retrieved(
                tuple(found) if said else in_order(others[: self.settings.k]),
                tuple({trace.id: trace for trace in (*found, *others)}.values()),
                recall_ms=(time.perf_counter() - begin) * 1e3,
                confidence=_confidence(atlas, query.text, said),
                columns={
                    "planned_steps": float(len(said.way.words)) if said and said.way else 0.0,
                    "places": float(len(atlas.map.steps)),
                    "links": float(len(atlas.map.links)),
                    "plan_ms": plan_ms,
                    **_gone(said),
                    **_gated(atlas),
                },
                restated=self._restated(said, query.text),
                answer=said.answer if said else "",
                rephrased=said.question if said and self.settings.spatial.wording == "route" else "",
            )

        return retrieve

    def _restated(self, said: "MapAnswer | None", question: str) -> str:
        if said is None or not said.answer:
            return ""
        return said.sentence if self.settings.spatial.wording == "route" else f"{question.rstrip(' ?.')}: {said.answer}."

    def pictures(self, question: str, best: Trace | None, traces: Sequence[Trace]) -> Sequence[Picture]:
        """The remembered map, with the way that answers a question."""
        from hippo_core.methods.spatial.pictures import drawn

        atlas = self.atlas(traces)
        return [drawn(atlas, atlas.say(question))] if self.settings.traces == "spatial" and atlas.map.links else ()

    def atlas(self, traces: Sequence[Trace]) -> "MapAnswerer":
        """The map of these traces, with the habits that the last sleep made of them."""
        from hippo_core.methods.spatial.answers import MapAnswerer

        habits = next((trace.payload for trace in reversed(traces) if trace.payload), None)
        return MapAnswerer([trace.text for trace in traces], self.settings.spatial, habits, self._reader())

    def _reader(self) -> "PlaceReader | None":
        """The fitted reader, where the encoder is MiniLM."""
        from hippo_core.methods.spatial.learned import fitted_places

        learned = self.settings.encoder == "minilm" and self.settings.spatial.reading == "auto"
        return fitted_places(str(self.lm.device) if self.lm else "cpu") if learned else None


def _confidence(atlas: "MapAnswerer", question: str, said: "MapAnswer | None") -> float | None:
    """1 where the map has an answer, 0 where it is asked for what it does not hold, None where it is not asked, or statements may tell."""
    if said and (said.answer or said.question):
        return 1.0
    return 0.0 if atlas.lacks(question, said) else None


def _gone(said: "MapAnswer | None") -> dict[str, float]:
    """The columns of a way as it is gone."""
    trip = said.trip if said else None
    return dict(zip(TRIP, map(float, (trip.steps, trip.decisions, trip.macro_moves)), strict=True)) if trip else {}


def _gated(atlas: "MapAnswerer") -> dict[str, float]:
    """The columns of the gate: edges that the map holds for 1,000 observations, and how often it decided how."""
    edges = atlas.map.edges
    counts = (edges.decisions[action] for action in ("insert", "aggregate", "block", "drop"))
    return dict(zip(GATE, (1e3 * len(edges.held) / max(1, len(atlas.told)), *map(float, counts)), strict=True))

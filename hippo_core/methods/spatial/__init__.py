"""SMPD, the spatial memory: statements are read as places and the steps between them, and a question is answered from the map.

    statements -> links, steps of a walk -> map          question -> places, what is asked -> A* -> a sentence, in the words of a told route

A sleep makes macros of the routes that were told (macros.py), which stand for several steps of a plan.

The map finds the way, the model says it: what reaches it is one sentence in the place of the statements that it rests on, and it is asked
for that sentence (`wording`). Where the map has no answer, the statements that are most like the question are shown, as a rag does.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from hippo_core.methods.base import Memory, Picture, Query, Retrieve, Retrieved, in_order, replay_row
from hippo_core.methods.rag.rankers import likest
from hippo_core.methods.spatial.policy import MacroPolicyCodec
from hippo_core.methods.spatial.settings import SmpdSettings
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.methods.spatial.answers import MapAnswer, MapAnswerer
    from hippo_core.methods.spatial.learned import PlaceReader
    from hippo_core.store import TraceStore
    from hippo_core.store.trace import Decision

MACRO_POLICIES = MacroPolicyCodec()
TRIP = ("steps", "decisions", "macro_steps")  # of a way that is asked for, as it is gone: moves and decisions, decisions, moves in macros
GATE = ("nodes_per_1k", "edges_per_1k", "gate_inserted", "gate_aggregated", "gate_blocked", "gate_dropped")


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
    def codec(self) -> MacroPolicyCodec:
        return MACRO_POLICIES

    @property
    def replay_cycles(self) -> int:
        return self.settings.replay.cycles if self.settings.replay.enabled else 0

    def entangles(self, decisions: "Sequence[Decision]") -> bool:
        """The policy is learnt from all routes."""
        return True

    def replay(self, world: str, store: "TraceStore") -> Iterator[dict[str, object]]:
        """Replay the stated routes on the current map, and learn macros from those that succeed, which `recalled` says. No question is
        seen."""
        from hippo_core.methods.spatial.answers import MapAnswerer
        from hippo_core.methods.spatial.macros import Trajectory, replayed
        from hippo_core.methods.spatial.policy import learn
        from hippo_core.methods.spatial.reading import Route

        for cycle in range(1, self.replay_cycles + 1):
            traces = store.traces(world)
            atlas = MapAnswerer([trace.text for trace in traces], self.settings.spatial, reader=self._reader())
            routes = [(number, trajectory) for number, trajectory in atlas.observations if isinstance(trajectory, Route)]
            drawn = routes[max(0, len(routes) - most) :] if (most := self.settings.replay.max_items) is not None else routes
            rehearsed = list[tuple[Trace, Trajectory, float]]()
            for number, route in drawn:
                begin = time.perf_counter()
                if trajectory := replayed(route, atlas.planner):
                    rehearsed.append((traces[number], trajectory, (time.perf_counter() - begin) * 1e3))
            if not rehearsed:
                return
            policy = learn([trajectory for _, trajectory, _ in rehearsed])
            kept = {trace.id: None for trace in traces if trace.payload} | {rehearsed[-1][0].id: policy}
            with store.maintenance("replay"):
                store.use([trace.id for trace, trajectory, _ in rehearsed if trajectory.leads])
                store.update_payloads(kept)
            for trace, trajectory, ms in rehearsed:
                yield replay_row(cycle, trace, trajectory.leads, ms)

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        if self.settings.traces == "off":
            return lambda query: Retrieved((), ())
        index, ranker = WorldIndex(self.lm, traces, tuple(questions)), likest(self.lm, self.settings.encoder)
        atlases: dict[tuple[str, ...], MapAnswerer] = {}

        def retrieve(query: Query) -> Retrieved:
            begin = time.perf_counter()
            query = replace(
                query, taught=tuple(source for source in query.taught if source in index.passages)
            )  # what is forgotten left out
            passages = [index.passages[source] for source in query.taught]
            if query.taught not in atlases:
                atlases[query.taught] = self.atlas(passages)
            atlas = atlases[query.taught]
            planning = time.perf_counter()
            reply = atlas.answer(query.text)
            plan_ms = (time.perf_counter() - planning) * 1e3
            statements = [passages[number] for number in reply.statements] if reply else []
            order = ranker.order(index, query).positions if query.taught else ()
            others = [passages[position] for position in order]
            return Retrieved(
                tuple(statements) if reply else in_order(others[: self.settings.k]),
                tuple({trace.id: trace for trace in (*statements, *others)}.values()),
                recall_ms=(time.perf_counter() - begin) * 1e3,
                confidence=_confidence(atlas, query.text, reply),
                columns={
                    "planned_steps": float(len(reply.route.words)) if reply and reply.route else 0.0,
                    "places": float(len(atlas.map.steps)),
                    "links": float(len(atlas.map.links)),
                    "plan_ms": plan_ms,
                    **_trip_columns(reply),
                    **_gated(atlas),
                },
                restated=self._restated(reply, query.text),
                answer=reply.answer if reply else "",
                rephrased=reply.question if reply and self.settings.spatial.wording == "route" else "",
            )

        return retrieve

    def _restated(self, reply: "MapAnswer | None", question: str) -> str:
        if reply is None or not reply.answer:
            return ""
        return reply.sentence if self.settings.spatial.wording == "route" else f"{question.rstrip(' ?.')}: {reply.answer}."

    def pictures(self, question: str, best: Trace | None, traces: Sequence[Trace]) -> Sequence[Picture]:
        """The remembered map, with the way that answers a question."""
        from hippo_core.methods.spatial.pictures import drawn

        atlas = self.atlas(traces)
        return [drawn(atlas, atlas.answer(question))] if self.settings.traces == "spatial" and atlas.map.links else ()

    def atlas(self, traces: Sequence[Trace]) -> "MapAnswerer":
        """The map of these traces, with the policy that the last sleep learnt."""
        from hippo_core.methods.spatial.answers import MapAnswerer

        policy = next((trace.payload for trace in reversed(traces) if trace.payload), None)
        return MapAnswerer([trace.text for trace in traces], self.settings.spatial, policy, self._reader())

    def _reader(self) -> "PlaceReader | None":
        """The fitted reader, where the encoder is MiniLM."""
        from hippo_core.methods.spatial.learned import fitted_places

        learned = self.settings.encoder == "minilm" and self.settings.spatial.reading == "auto"
        return fitted_places(str(self.lm.device) if self.lm else "cpu") if learned else None


def _confidence(atlas: "MapAnswerer", question: str, reply: "MapAnswer | None") -> float | None:
    """1 where the map has an answer, 0 where it lacks what is asked, None where it is not asked, or statements may answer."""
    if reply and (reply.answer or reply.question):
        return 1.0
    return 0.0 if atlas.lacks(question, reply) else None


def _trip_columns(reply: "MapAnswer | None") -> dict[str, float]:
    """The columns of a trip."""
    trip = reply.trip if reply else None
    return dict(zip(TRIP, map(float, (trip.steps, trip.decisions, trip.macro_moves)), strict=True)) if trip else {}


def _gated(atlas: "MapAnswerer") -> dict[str, float]:
    """The columns of the gate: places and edges that the map holds for 1,000 observations, and how often it decided how."""
    edges, observed = atlas.map.edges, max(1, len(atlas.observations))
    counts = (edges.decisions[action] for action in ("insert", "aggregate", "block", "drop"))
    grown = (1e3 * size / observed for size in (len(atlas.map.steps), len(edges.stored)))
    return dict(zip(GATE, (*grown, *map(float, counts)), strict=True))

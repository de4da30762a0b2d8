"""HEI-NW, the episodic memory: sparse keys, a write gate, recall over several channels, completion and replay.

    encode -> gate -> store (writing.py)          recall -> complete -> rank (retrieval/recall.py)          replay (replaying.py)

Sources: k-WTA keys, McNaughton and Morris 1987; completion, Hopfield 1982 and Ramsauer et al. 2020 (arXiv 2008.02217).
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hippo_core.methods.base import Memory, Observation, Picture, Query, Retrieve, Retrieved, in_order
from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.store.trace import Decision, Trace

if TYPE_CHECKING:
    from hippo_core.methods.episodic.components import Components
    from hippo_core.methods.episodic.writing import TraceWriter
    from hippo_core.retrieval.payload import PayloadCodec
    from hippo_core.retrieval.recall import Recall
    from hippo_core.store import TraceStore


class HeiNW(Memory):
    """The episodic memory of a loaded model. Fitted weights are read when they are first needed (components.py)."""

    Settings = HeiNWSettings
    steps = ("teach", "replay")
    weights = (
        "{model}/adapter.*",
        "{model}/key.*",
        "{model}/recall.*",
        "{model}/confidence.*",
        "minilm/head-1337.*",
        "minilm/pieces-1337.*",
        "minilm/confidence.*",
    )
    says_confidence = True
    replay_settings = ("replay", "episodic.use_completion", "episodic.recall", "episodic.hopfield", "episodic.predictive")

    _writes: "TraceWriter | None" = None

    @cached_property
    def components(self) -> "Components":
        """The key encoder, the fitted weights and the cache of keys and values."""
        from hippo_core.methods.episodic.components import Components

        return Components(self.lm, self.settings, getattr(self.delivery, "passage_kv", None) if self.settings.delivery == "kv" else None)

    @property
    def replay_cycles(self) -> int:
        return self.settings.replay.cycles

    @property
    def codec(self) -> "PayloadCodec":
        return self.components.codec()

    def calibrate(self, worlds: Iterable[Sequence[Observation]]) -> Mapping[str, Any] | None:
        """See `Memory`: a `Calibration` of the salience gate, if the settings have one."""
        from hippo_core.methods.episodic.writing import calibration

        return calibration(self.components, worlds) if self.settings.calibrates else None

    def write(self, observation: Observation, store: "TraceStore", calibration: Mapping[str, Any] | None = None) -> Decision:
        """See `Memory`. Only `teach` enforces the budget."""
        return self._writer(store, calibration).write(observation)

    def teach(
        self, observations: Sequence[Observation], store: "TraceStore", calibration: Mapping[str, Any] | None = None
    ) -> list[Decision]:
        """See `Memory`. Traces beyond the budget, a share of all that the world was told so far, are evicted at the end."""
        self._writer(store, calibration).prepare(observations)
        decisions = super().teach(observations, store, calibration)
        budget = self.settings.episodic.store.budget
        if budget is not None and observations:
            world = observations[0].statement.world
            store.evict({world: math.ceil(budget * store.told(world))})
        return decisions

    def _writer(self, store: "TraceStore", calibration: Mapping[str, Any] | None) -> "TraceWriter":
        """The writer of a store. It is reused until another store is written to."""
        from hippo_core.methods.episodic.writing import TraceWriter, gate_of

        if self._writes is None or self._writes.store is not store:
            settings = self.settings.episodic
            protects = settings.gate.policy == "salience" and settings.gate.delta > 0
            self._writes = TraceWriter(self.components, store, gate_of(settings, calibration), protects)
        return self._writes

    def replay(self, world: str, store: "TraceStore") -> Iterator[dict[str, object]]:
        from hippo_core.methods.episodic.replaying import replay_world

        return replay_world(self.components, world, store)

    def kept(self, traces: Sequence[Trace]) -> Sequence[Trace]:
        """See `Memory`; each with the codes of its sentences."""
        from hippo_core.retrieval.text_encoder import with_payloads

        return with_payloads(self.components.encoder, traces)

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        from hippo_core.retrieval.text_encoder import coded_cues

        if self.settings.traces == "off":
            return lambda query: Retrieved((), ())
        recaller = self.components.recaller(traces)
        cues = coded_cues(recaller.index.encoder, questions)

        def retrieve(query: Query) -> Retrieved:
            codes, cue_ms = cues.of(query.text)
            recall = recaller.recall(query.text, set(query.taught), codes)
            begin = time.perf_counter()
            recall, replaced = self._current_first(query, recall)
            recall_ms = recall.recall_ms + cue_ms + (time.perf_counter() - begin) * 1e3
            costs = recall_ms, recall.completion_ms, recall.encode_ms, recall.computed_tokens, recall.once_tokens
            shown = in_order(recall.traces[: self.settings.k])
            return Retrieved(shown, recall.traces, recall.scores, recall.terms, *costs, confidence=recall.confidence, replaced=replaced)

        return retrieve

    def _current_first(self, query: Query, recall: "Recall") -> tuple["Recall", tuple[Trace, ...]]:
        """A recall with what holds before what it replaced, where the settings want it; and the replaced traces."""
        if not self.settings.reads_versions:
            return recall, ()
        from hippo_core.methods.versions import current_first

        order, replaced, tokens = current_first(self.lm, query, recall.traces, recall.scores, self.settings.decoding)
        traces, scores = (tuple(values[rank] for rank in order) for values in (recall.traces, recall.scores))
        features = recall.features and {name: values[list(order)] for name, values in recall.features.items()}
        tokens += recall.computed_tokens
        return replace(recall, traces=traces, scores=scores, features=features, computed_tokens=tokens), replaced

    def pictures(self, question: str, best: Trace | None, traces: Sequence[Trace]) -> Sequence[Picture]:
        """The units that win for question and trace, and the energy of the cue along Hopfield steps."""
        from hippo_core.methods.episodic.pictures import pictures

        return pictures(self.components, question, best, traces) if self.settings.traces == "episodic" else ()

    def index_tokens(self, traces: Sequence[Trace]) -> float:
        """The tokens of the statements' codes, which are made at teaching."""
        from hippo_core.retrieval.text_encoder import cost

        return cost(self.components.encoder, [trace.text for trace in traces]) if self.settings.traces == "episodic" else 0.0

    def warm_up(self) -> None:
        if self.settings.traces == "episodic":
            self.components.warm_up()

    def forget(self) -> None:
        super().forget()
        self._writes = None
        self.components.passage_kv.forget()

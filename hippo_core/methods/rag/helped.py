"""Retrieval with a memory's help: a rag or a long context chooses k facts, and a memory reads these alone and reasons over them.

    question -> retriever -> k facts -> helper: its graph, conflict rule, map, planner -> what it brings, else the k facts

There is no store, no gate and no sleep; the helper is opened anew on the facts of each question, in its time.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, field_validator

from hippo_core.errors import LabError
from hippo_core.methods.base import Abstention, Count, Memory, Method, MethodSettings, Query, Retrieve, Retrieved
from hippo_core.methods.encoded import AutoEncoder
from hippo_core.methods.presets import Preset, load_preset
from hippo_core.methods.self_ask import costs
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

CONFIDENCE_THRESHOLD = 0.5  # from which confidence on a helper has an answer, whatever it shows


class HelpedSettings(MethodSettings):
    """`retriever`: the preset that chooses facts, one that is not taught and has a `k`; `k`: how many it chooses (None: all, of a long
    context). `helper`: the preset of the memory that reads them. `encoder`: that of both, where they have one; the parts of a composite
    say their own. `abstention`: as memories have it, so "unknown" is not the model's to say where the helper found something."""

    retriever: str = "baselines/rag_sum"
    helper: str = "memory/sgc_rss"
    k: Count | None = 10
    encoder: AutoEncoder = Field(default="auto", validate_default=True)  # type: ignore[assignment]
    abstention: Abstention = "either"

    @field_validator("retriever")
    @classmethod
    def _chooses(cls, name: str) -> str:
        preset = _loaded(name)
        if preset.taught or "k" not in type(preset.settings).model_fields:
            raise ValueError(f"preset {name} is no search for k facts; expected a retriever such as baselines/rag_sum")
        return name

    @field_validator("helper")
    @classmethod
    def _reads(cls, name: str) -> str:
        if not issubclass(_loaded(name).method, Memory):
            raise ValueError(f"preset {name} is no memory; expected a helper such as memory/sgc_rss")
        return name

    @cached_property
    def retrieving(self) -> Preset:
        """The retriever with its settings."""
        return _set(self.retriever, k=self.k, encoder=self.encoder)

    @cached_property
    def helping(self) -> Preset:
        """The memory with its settings."""
        return _set(self.helper, delivery=self.delivery, encoder=self.encoder)

    @property
    def uses(self) -> Mapping[str, Preset]:
        return {"retriever": self.retrieving, "helper": self.helping}


def _loaded(name: str) -> Preset:
    try:
        return load_preset(name)
    except LabError as error:
        raise ValueError(str(error)) from None


def _set(preset: str, **settings: Any) -> Preset:
    """A preset with those of these settings that it has."""
    known = type(load_preset(preset).settings).model_fields
    return load_preset(preset, {name: value for name, value in settings.items() if name in known})


class Helped(Method):
    """The retriever of its settings, with the helper of its settings behind it. `helped`: whether the helper found something."""

    Settings = HelpedSettings

    def __init__(self, lm: "LanguageModel", settings: HelpedSettings) -> None:
        super().__init__(lm, settings)
        retriever, helper = settings.retrieving, settings.helping
        self._retriever: Method = retriever.method(lm, retriever.settings)
        self._helper: Any = helper.method(lm, helper.settings)

    @classmethod
    def with_settings(cls, settings: HelpedSettings) -> type[Self]:
        """The class that declares what its retriever and its helper declare."""
        retriever, helper = settings.retrieving.method, settings.helping.method
        declared = {
            "weights": tuple(dict.fromkeys((*retriever.weights, *helper.weights))),
            "columns": {"test": ("helped", *helper.columns.get("test", ()))},
            "says_confidence": helper.says_confidence,
        }
        made: Any = type(cls.__name__, (cls,), declared)
        return made

    def index_tokens(self, traces: Sequence[Trace]) -> float:
        parts = self._helper.parts.values()
        return self._retriever.index_tokens(traces) + math.fsum(part.index_tokens(traces) for part in parts)

    def warm_up(self) -> None:
        self._retriever.warm_up()
        self._helper.warm_up()

    @cached_property
    def _warmed(self) -> None:
        self.warm_up()

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        """See `Method`. The helper's traces are made here, once and untimed, as each depends on its own text alone."""
        _ = self._warmed
        search, passages = self._retriever.open(traces, questions), {trace.source: trace for trace in traces}
        kept = [replace(trace, memory=name) for name, part in self._helper.parts.items() for trace in part.kept(traces)]

        def retrieve(query: Query) -> Retrieved:
            retrieved = search(query)
            chosen = {trace.source for trace in retrieved.shown}
            if not chosen:
                return retrieved
            begin = time.perf_counter()
            ask = self._helper.open([trace for trace in kept if trace.source in chosen])
            opening = Retrieved((), recall_ms=(time.perf_counter() - begin) * 1e3)
            asked = retrieved.rephrased or query.text
            from_helper = ask(replace(query, text=asked, taught=tuple(source for source in query.taught if source in chosen), window=()))
            helped = from_helper.together or from_helper.restates or (from_helper.confidence or 0.0) >= CONFIDENCE_THRESHOLD
            best = (
                replace(from_helper, rephrased=from_helper.rephrased or retrieved.rephrased)
                if helped
                else replace(retrieved, confidence=None)
            )
            return replace(
                best,
                **costs([retrieved, opening, from_helper]),
                shown=tuple(passages[trace.source] for trace in best.shown),
                ranking=retrieved.ranking,
                scores=retrieved.scores,
                terms=retrieved.terms,
                columns={**from_helper.columns, "helped": float(helped)},
            )

        return retrieve

    def forget(self) -> None:
        super().forget()
        self._retriever.forget()
        self._helper.forget()

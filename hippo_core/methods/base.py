"""The base of all methods: from passages that were taught, to what is shown for a question.

A method is bound to a loaded model and its settings. `open` gets the passages of one world and returns what retrieves from them. A method
never sees an answer, a gold fact or an item's id: all that it knows of a question is a `Query`. A `Memory` is a method that is taught in
another process: `teach` writes traces to a store, and `open` gets what the store holds.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from hippo_core.files import LabError, unknown
from hippo_core.store.codec import NoPayload
from hippo_core.store.trace import Decision, Statement, Trace

if TYPE_CHECKING:
    from hippo_core.delivery.types import Delivery
    from hippo_core.models.language_model import LanguageModel
    from hippo_core.store import Codec, Identity, TraceStore

Step = Literal["teach", "replay", "test"]
Decoding = Literal["short", "plain"]  # how the model is asked: by its chat template and an instruction, or neither
Control = Literal["none", "empty", "shuffled", "oracle", "random"]  # see controls.py
Count = Annotated[int, Field(ge=1)]
OFF = BeforeValidator(lambda value: "off" if value is False else value)  # YAML reads a plain off as false


@dataclass(frozen=True, slots=True)
class Query:
    """A question as a method sees it.

    Args:
        text: the question.
        taught: sources of the passages that were taught for it, in order of telling.
        window: sources of those that stand right before it; empty in another session.
    """

    text: str
    taught: tuple[str, ...]
    window: tuple[str, ...] = ()


@dataclass(frozen=True)
class Retrieved:
    """What a method brings for a question.

    Args:
        shown: the traces that reach the model, in order of telling.
        ranking: all that were ranked, best first; None where nothing is ranked.
        scores: those of the ranking, as far as they are given.
        recall_ms, completion_ms: time of the query's two stages; NaN where nothing is searched. Indexes are built before.
        encode_ms: time in which traces that were met for the first time were run to keys and values; no part of the others.
        computed_tokens: tokens that a model or an encoder ran for the query.
        columns: numbers of the method's own, by the names that it declares for its tests.
    """

    shown: tuple[Trace, ...]
    ranking: tuple[Trace, ...] | None = None
    scores: tuple[float, ...] = ()
    recall_ms: float = math.nan
    completion_ms: float = 0.0
    encode_ms: float = 0.0
    computed_tokens: float = 0.0
    columns: Mapping[str, float] = field(default_factory=dict)

    @property
    def retrieval_ms(self) -> float:
        """The time of the whole query."""
        return self.recall_ms + self.completion_ms


NO_PAYLOAD = NoPayload()
Retrieve = Callable[[Query], Retrieved]


def in_order(traces: Iterable[Trace]) -> tuple[Trace, ...]:
    """Traces in order of telling."""
    return tuple(sorted(traces, key=lambda trace: (trace.time, trace.id)))


@dataclass(frozen=True)
class Observation:
    """A statement with what only its teller knows of it: who that is, and how sure (`confidence`, from 0 to 1; None where nothing is said
    of it). Never the words of its slots, which its text alone tells, nor whether it is asked for later."""

    statement: Statement
    teller: str = ""
    confidence: float | None = None
    reward: bool = False
    pin: bool = False
    provenance: str = ""
    context_key: str = ""

    @property
    def told(self) -> dict[str, Any]:
        """All but the statement, as plain values: `Observation(statement, **told)` is the same again."""
        return {name: getattr(self, name) for name in ("teller", "confidence", "reward", "pin", "provenance", "context_key")}

    def trace(self, **more: Any) -> Trace:
        """The trace of its statement, with what a method adds or says otherwise."""
        statement = self.statement
        known = {name: getattr(self, name) for name in ("teller", "confidence", "provenance", "context_key")}
        told = {"pinned": self.pin, "time": statement.time, **known}
        return Trace(statement.world, statement.source, statement.text, **{**told, **more})


class SettingsModel(BaseModel):
    """Settings, or a section of them. They cannot be changed, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MethodSettings(SettingsModel):
    """What a preset can say of every method: how the model is asked, how passages reach it (a module of `hippo_core.delivery`, or a
    module path), and what stands in the place of what was retrieved."""

    decoding: Decoding = "short"
    delivery: str = "text"
    control: Control = "none"

    @property
    def calibrates(self) -> bool:
        """Whether it cannot be taught without validation worlds."""
        return False

    @property
    def requires(self) -> tuple[str, ...]:
        """Published encoders that must be on the disk (`make models`)."""
        encoder = getattr(self, "encoder", None)
        return () if encoder in (None, "own") else (encoder,)


class Method:
    """What brings something for a question. Subclasses say `Settings` and `open`."""

    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    steps: ClassVar[tuple[Step, ...]] = ()  # in which it is prepared, each in a process of its own
    ignores_window: ClassVar[bool] = True  # whether it brings the same in the immediate regime as in the delayed one
    columns: ClassVar[Mapping[Step, tuple[str, ...]]] = {}  # by step, the names of numbers that its rows have besides all others
    weights: ClassVar[tuple[str, ...]] = ()  # files below data/weights that it reads, as patterns; {model} is the one that answers

    def __init__(self, lm: "LanguageModel", settings: Any) -> None:
        self.lm, self.settings = lm, settings

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        """What retrieves from these traces of one world, which are in order of telling. `questions`: those to come, to encode together."""
        raise NotImplementedError

    @classmethod
    def own_columns(cls, step: Step, measured: Mapping[str, float]) -> dict[str, float]:
        """The columns that it declares for a step, with what was measured, NaN for the others; LabError for one not declared."""
        declared = cls.columns.get(step, ())
        if strangers := sorted(measured.keys() - set(declared)):
            raise unknown(f"column of {cls.__name__} at {step}", strangers[0], declared or ("none: name it in `columns`",))
        return {name: float(measured.get(name, math.nan)) for name in declared}

    @cached_property
    def delivery(self) -> "Delivery":
        """How what it brings reaches the model."""
        from hippo_core.delivery import load_delivery

        return load_delivery(self.settings.delivery, self.lm, self.settings.decoding, self.kept_kv)

    @property
    def kept_kv(self) -> Literal["none", "memory", "disk"]:
        """Where keys and values of passages are kept, for deliveries that have some."""
        return "memory"

    def warm_up(self) -> None:
        """Do before the first question what is done once a process."""

    def forget(self) -> None:
        """Let go of what is kept of the worlds so far."""
        self.delivery.forget()


class Runtime(SettingsModel):
    """`enable_writes`: whether the store takes what it is told. `alter_answers`: facts that are asked for are told with another answer in
    the place of theirs, so that an answer says whether it came from the store."""

    enable_writes: bool = True
    alter_answers: bool = False


class MemorySection(SettingsModel):
    """What holds for every memory."""

    runtime: Runtime = Runtime()


class MemorySettings(MethodSettings):
    """What a preset can say of every memory; `k`: how many traces stand before a question."""

    k: Count = 1
    memory: MemorySection = MemorySection()


class Memory(Method):
    """A method that is taught. As it stands it keeps every statement, without a payload; subclasses say at least `open`."""

    Settings: ClassVar[type[MethodSettings]] = MemorySettings
    steps: ClassVar[tuple[Step, ...]] = ("teach",)
    test_settings: ClassVar[tuple[str, ...]] = ("delivery", "control", "k")  # settings that matter to a test alone, by dotted key
    replay_settings: ClassVar[tuple[str, ...]] = ()  # those that matter from a replay on

    @property
    def codec(self) -> "Codec":
        """How its payloads are written; without one a trace is its text."""
        return NO_PAYLOAD

    @classmethod
    def algorithm(cls) -> str:
        """The name of the folder in which its stores lie."""
        from hippo_core.store.identity import algorithm_of

        return algorithm_of(cls.kind())

    @classmethod
    def kind(cls) -> str:
        """Its module path, which its stores name."""
        return f"{cls.__module__}:{cls.__qualname__}"

    def identity(self) -> "Identity":
        """What a store of this memory is written with; it opens for the same alone."""
        from hippo_core.models import artifacts
        from hippo_core.store.identity import Identity

        base = artifacts.base_of(self.lm)
        weights = "+".join([base["sha256"], *([base["merged"]] if "merged" in base else [])])
        return Identity(self.lm.spec.name, weights, self.kind(), self.codec)

    @property
    def writes(self) -> bool:
        """Whether anything is stored at all."""
        return self.settings.memory.runtime.enable_writes

    @property
    def replay_cycles(self) -> int:
        """How often the store is rehearsed in a replay."""
        return 0

    def calibrate(self, worlds: Iterable[Sequence[Observation]]) -> Mapping[str, Any] | None:
        """What `teach` needs to know of validation worlds, where it needs any: plain values, which are noted in the store. Worlds are drawn
        one by one, as they are asked for."""
        return None

    def write(self, observation: Observation, store: "TraceStore", calibration: Mapping[str, Any] | None = None) -> Decision:
        """Tell one statement to a store, whatever it holds already, in one transaction; what was decided about it."""
        with store.together():
            [trace] = store.append([observation.trace()])
            decision = Decision(observation.statement, 0.0, {}, {}, "insert", trace, observation.told)
            store.log([decision])
        return decision

    def teach(
        self, observations: Sequence[Observation], store: "TraceStore", calibration: Mapping[str, Any] | None = None
    ) -> list[Decision]:
        """Tell the statements of one world, in order, in one transaction; what was decided about each."""
        with store.together():
            return [self.write(one, store, calibration) for one in observations]

    def delete(
        self,
        store: "TraceStore",
        ids: Sequence[int] = (),
        provenance: str | None = None,
        calibration: Mapping[str, Any] | None = None,
    ) -> int:
        """Remove traces for good, these or those of a provenance; how many statements went. The store equals one that was never told them,
        but for the numbers of ids. Where statements were weighed or joined the others of their worlds are taught again in their order, and
        what a replay did to these worlds is lost."""
        going = {trace.id: trace for trace in store.traces() if trace.id in set(ids)}
        if missing := sorted(set(ids) - going.keys()):
            raise LabError(f"{store.path} has no trace {missing[0]}; give ids that `traces` returns")
        named = [one for one in store.decisions() if provenance is not None and one.told["provenance"] == provenance]
        told = [*named, *(one for one in store.decisions() if one.trace_id in going and one not in named)]
        worlds = dict.fromkeys(one.statement.world for one in told)
        statements = {one.statement for one in told}
        with store.together():
            for world in worlds:
                decisions = store.decisions(world)
                if any(one.raw or one.action != "insert" for one in decisions):
                    store.erase_world(world)
                    rest = [Observation(one.statement, **one.told) for one in decisions if one.statement not in statements]
                    self.teach(rest, store, calibration)
                else:
                    store.erase([one.trace_id for one in decisions if one.statement in statements and one.trace_id is not None])
        store.compact()
        return len(told)

    def replay(self, world: str, store: "TraceStore") -> Iterator[dict[str, object]]:
        """Rehearse one world of a store, and change it; a row a trace and cycle."""
        raise NotImplementedError

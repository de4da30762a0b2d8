"""The base of all methods. A method chooses, of the passages that were taught, those that the model is shown for a question.

A method is bound to a loaded model and its settings. `open` gets the passages of one world and returns a function that retrieves from
them. A method never sees an answer, a gold fact or an item's id: all that it knows of a question is a `Query`. A `Memory` is a method that
is taught in another process: `teach` writes traces to a store, and `open` gets what the store holds.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from hippo_core.delivery import BESIDE_PROMPT
from hippo_core.errors import LabError, unknown
from hippo_core.models.kv_storage import KVStorage
from hippo_core.store.codec import NoPayload
from hippo_core.store.trace import Decision, Statement, Trace
from hippo_core.text import OWN_ANSWER_TOKENS, normal

if TYPE_CHECKING:
    from hippo_core.delivery.types import Delivery
    from hippo_core.methods.presets import Preset
    from hippo_core.models.language_model import LanguageModel
    from hippo_core.store import Codec, Identity, TraceStore
    from hippo_core.suites.types import Fact

Step = Literal["teach", "replay", "test"]
Decoding = Literal["short", "plain"]  # how the model is asked: by its chat template and an instruction, or neither
Abstention = Literal["model", "method", "either"]  # who decides whether an answer is "unknown"
Control = Literal["none", "empty", "shuffled", "oracle", "random"]  # see controls.py
Count = Annotated[int, Field(ge=1)]
OFF = BeforeValidator(lambda value: "off" if value is False else value)  # YAML reads a plain off as false


@dataclass(frozen=True, slots=True)
class Query:
    """A question as a method sees it."""

    text: str
    taught: tuple[str, ...]  # sources of the passages that were taught for it, in order of telling
    window: tuple[str, ...] = ()  # sources of those that stand right before it; empty in another session
    room: int = OWN_ANSWER_TOKENS  # new tokens of an answer, at most


class Read(NamedTuple):
    """A part of what the model read: a line before the question, or the question; and who wrote it: whoever told the sentence, whoever
    asked the question, a program, or the model itself, which answered an inner question."""

    text: str
    by: Literal["teller", "asker", "program", "model"]


@dataclass(frozen=True)
class Retrieved:
    """What a method retrieved for a question."""

    shown: tuple[Trace, ...]  # the traces that reach the model, in order of telling unless `together`
    ranking: tuple[Trace, ...] | None = None  # all traces that were ranked, best first; None where nothing is ranked
    scores: tuple[float, ...] = ()  # of the ranking, in its order; may be fewer than the ranking or none
    # What the scores are made of, by name (a channel, a rule, a completion), each as long as `scores`; none where it is not known.
    terms: Mapping[str, Sequence[float]] = field(default_factory=dict)
    recall_ms: float = math.nan  # of the query's first stage, without building indexes; NaN where nothing is searched
    completion_ms: float = 0.0  # of its second stage
    encode_ms: float = 0.0  # in which keys and values were made of traces that had none yet; no part of the other two times
    computed_tokens: float = 0.0  # that a model or an encoder ran for the query
    once_tokens: float = 0.0  # of single traces that were run for the first time, and are kept; no part of `computed_tokens`
    columns: Mapping[str, float] = field(default_factory=dict)  # numbers of its own, by the names that it declares for the step test
    confidence: float | None = None  # that what it shows holds the answer, from 0 to 1; None where it does not say
    together: bool = False  # whether what is shown is one text in the order in which it stands in `shown`, as the statements of a path are
    restated: str = ""  # what the method says in the place of the words of what it shows, such as a way on a map; "": those words
    # Whether `restated` tells what is shown in plainer words, in which the model must still find the answer; else the model copies it.
    reworded: bool = False
    rephrased: str = ""  # the question as the model is asked it, in words that go with `restated`; "": as it was put
    answer: str = ""  # what the method itself takes for the answer, as the name where a path ends; "" where it leaves that to the model
    inner_read: tuple[Read, ...] = ()  # what the model read and said on the way to `rephrased`, in order; none where it was not asked
    replaced: tuple[Trace, ...] = ()  # the traces that tell the matter of what is shown, and hold no longer

    def __post_init__(self) -> None:
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise LabError(f"a method's confidence goes from 0 to 1, got {self.confidence}")

    @property
    def retrieval_ms(self) -> float:
        """The time of the whole query."""
        return self.recall_ms + self.completion_ms

    @property
    def restates(self) -> bool:
        """Whether the model is told words of the method in the place of what is shown."""
        return bool(self.restated and self.shown)

    @property
    def composed(self) -> bool:
        """Whether what reaches the model was put together for this question, so that nothing of it can be run before: words of the method,
        or several traces as one text."""
        return self.restates or (self.together and len(self.shown) > 1)

    @property
    def delivered(self) -> tuple[Trace, ...]:
        """What reaches the model: the traces in their words, or one in the words of the method."""
        if not self.restates:
            return self.shown
        return (replace(self.shown[0], text=self.restated, id=0, source="", payload=None),)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing (SVG) of what a method does with a question, and one sentence on how to read it."""

    title: str
    svg: str
    reading: str


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

    @classmethod
    def of(cls, fact: "Fact") -> Self:
        """A fact as its teller knows it, which is all that a method gets of it: neither its slots, nor whether it is asked for later."""
        statement = Statement(fact.id, fact.world, fact.text, fact.time)
        return cls(statement, fact.teller, fact.confidence, fact.reward, fact.pin, fact.provenance, fact.context_key)

    @property
    def told(self) -> dict[str, Any]:
        """All but the statement, as plain values: `Observation(statement, **told)` equals this observation."""
        return {name: getattr(self, name) for name in ("teller", "confidence", "reward", "pin", "provenance", "context_key")}

    def trace(self, **more: Any) -> Trace:
        """The trace of its statement; `more` are further fields of the trace, or other values of these."""
        statement = self.statement
        known = {name: getattr(self, name) for name in ("teller", "confidence", "provenance", "context_key")}
        fields = {"pinned": self.pin, "time": statement.time, **known}
        return Trace(statement.world, statement.source, statement.text, **{**fields, **more})


def replay_row(
    cycle: int, trace: Trace, recalled: bool, ms: float, cue: str | None = None, after: float | None = None, merged: bool = False
) -> dict[str, object]:
    """A row of a replay. `cue`: by which the trace was recalled, if not its words; `after`: its salience then, if that has changed;
    `merged`: whether another trace has taken its place."""
    return {
        "cycle": cycle,
        "world": trace.world,
        "trace_id": trace.id,
        "cue": trace.text if cue is None else cue,
        "recalled": float(recalled),
        "salience_before": trace.salience,
        "salience_after": trace.salience if after is None else after,
        "merged": float(merged),
        "ms": ms,
    }


class SettingsModel(BaseModel):
    """Settings, or a section of them. They cannot be changed, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MethodSettings(SettingsModel):
    """The settings that every method has: how the model is asked, how passages reach it (a module of `hippo_core.delivery`, or a module
    path), which control replaces what was retrieved, and who decides whether an answer is "unknown": the model, or a method that says how
    sure it is (then "unknown" is the answer below a confidence of .5, and never from there on), or either of them (the method where it is
    sure, the model elsewhere). Whoever decides, "unknown" is the answer below a confidence of `unknown_below`."""

    decoding: Decoding = "short"
    delivery: str = "text"
    control: Control = "none"
    abstention: Abstention = "model"
    unknown_below: Annotated[float, Field(ge=0, le=1)] = 0.0

    @property
    def calibrates(self) -> bool:
        """Whether it needs validation worlds before it can be taught."""
        return False

    @property
    def keeps_kv(self) -> bool:
        """Whether passages are run to keys and values that are kept."""
        return self.delivery in BESIDE_PROMPT

    @property
    def kv_storage(self) -> KVStorage:
        """How they are kept."""
        return KVStorage()

    @property
    def requires(self) -> tuple[str, ...]:
        """Published encoders that must be on the disk (`make models`): its own, or those of the presets that it uses."""
        if self.uses:
            return tuple(dict.fromkeys(name for used in self.uses.values() for name in used.settings.requires))
        encoder = getattr(self, "encoder", None)
        return () if encoder in (None, "own") else (encoder,)

    @property
    def memories(self) -> Mapping[str, "Preset"]:
        """The presets of the memories that it puts together, by name; none but for a composite."""
        return {}

    @property
    def uses(self) -> Mapping[str, "Preset"]:
        """The presets whose methods it runs, by name, so that what it brings rests on their settings and code, too."""
        return self.memories


class Method:
    """The base class of methods. Subclasses define `Settings` and `open`."""

    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    steps: ClassVar[tuple[Step, ...]] = ()  # in which it is prepared, each in a process of its own
    ignores_window: ClassVar[bool] = True  # whether it brings the same in the immediate regime as in the delayed one
    columns: ClassVar[Mapping[Step, tuple[str, ...]]] = {}  # by step, the names of numbers that its rows have besides all others
    says_confidence: ClassVar[bool] = False  # whether what it retrieves comes with a confidence, at least sometimes
    weights: ClassVar[tuple[str, ...]] = ()  # files below data/weights that it reads, as patterns; {model} is the one that answers

    def __init__(self, lm: "LanguageModel", settings: Any) -> None:
        self.lm, self.settings = lm, settings

    @classmethod
    def with_settings(cls, settings: Any) -> type[Self]:
        """The class that these settings are for: itself, unless what it declares above depends on them."""
        return cls

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        """A function that retrieves from these traces of one world, which are in order of telling. `questions`: those that will be asked,
        so that they can be encoded together."""
        raise NotImplementedError

    def pictures(self, question: str, best: Trace | None, traces: Sequence[Trace]) -> Sequence[Picture]:
        """Drawings of how it came to its best trace for a question; none unless a method draws some."""
        return ()

    def index_tokens(self, traces: Sequence[Trace]) -> float:
        """Tokens that a model or an encoder runs once for these traces of one world, before any question."""
        return 0.0

    @classmethod
    def own_columns(cls, step: Step, measured: Mapping[str, float]) -> dict[str, float]:
        """The columns that it declares for a step, with what was measured or NaN. LabError for a measured column that is not declared."""
        declared = cls.columns.get(step, ())
        if strangers := sorted(measured.keys() - set(declared)):
            raise unknown(f"column of {cls.__name__} at {step}", strangers[0], declared or ("none: name it in `columns`",))
        return {name: float(measured.get(name, math.nan)) for name in declared}

    @cached_property
    def delivery(self) -> "Delivery":
        """The delivery of what it retrieves to the model."""
        from hippo_core.delivery import load_delivery

        return load_delivery(self.settings.delivery, self.lm, self.settings.decoding, self.settings.kv_storage)

    def warm_up(self) -> None:
        """Do once a process what would otherwise fall into the time of its first question."""

    def forget(self) -> None:
        """Drop what is kept of earlier worlds."""
        self.delivery.forget()


class Runtime(SettingsModel):
    """`enable_writes`: whether statements are written to the store. `alter_answers`: facts that are asked for are told with another answer
    than their own, so that a reply shows whether it came from the store."""

    enable_writes: bool = True
    alter_answers: bool = False


class Forgetting(SettingsModel):
    """What is forgotten at the end of a telling. `ttl`: how long a trace stays after its last telling, in statements of its world that were
    told since; `merge`: the cosine from which on near-equal traces are one (store/near_equal.py). None: nothing goes."""

    ttl: Annotated[int, Field(ge=0)] | None = None
    merge: Annotated[float, Field(gt=0, le=1)] | None = None


class MemorySection(SettingsModel):
    """Settings that hold for every memory."""

    runtime: Runtime = Runtime()
    forgetting: Forgetting = Forgetting()


class MemorySettings(MethodSettings):
    """The settings that every memory has; `k`: how many traces are shown for a question."""

    k: Count = 1
    memory: MemorySection = MemorySection()


class Memory(Method):
    """A method that is taught. This base keeps every statement, without a payload; subclasses define at least `open`."""

    Settings: ClassVar[type[MethodSettings]] = MemorySettings
    steps: ClassVar[tuple[Step, ...]] = ("teach",)
    # Settings that matter to a test alone, by dotted key.
    test_settings: ClassVar[tuple[str, ...]] = ("delivery", "control", "abstention", "unknown_below", "k")
    replay_settings: ClassVar[tuple[str, ...]] = ()  # those that matter from a replay on

    @property
    def codec(self) -> "Codec":
        """The codec of its payloads; by default a trace has no payload besides its text."""
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
        """The identity that a store of this memory is written with; it opens only for an equal one."""
        from hippo_core.models import artifacts
        from hippo_core.store.identity import Identity

        base = artifacts.base_of(self.lm)
        weights = "+".join([base["sha256"], *([base["merged"]] if "merged" in base else [])])
        return Identity(self.lm.spec.name, weights, self.kind(), self.codec)

    @property
    def parts(self) -> Mapping[str, "Memory"]:
        """The memories whose stores it reads, by name; "" where it is one itself."""
        return {"": self}

    def kept(self, traces: Sequence[Trace]) -> Sequence[Trace]:
        """Told traces as `open` gets them where no gate chose among them, and no store and no sleep stands between: with the payload that
        rests on the text alone."""
        return traces

    @property
    def writes(self) -> bool:
        """Whether anything is stored at all."""
        return self.settings.memory.runtime.enable_writes and getattr(self.settings, "traces", "") != "off"

    @property
    def alters_answers(self) -> bool:
        """Whether what is asked for is told with another answer."""
        return self.settings.memory.runtime.alter_answers

    @property
    def replay_cycles(self) -> int:
        """How many cycles a replay has."""
        return 0

    def calibrate(self, worlds: Iterable[Sequence[Observation]]) -> Mapping[str, Any] | None:
        """What `teach` needs to know of validation worlds, as plain values that are noted in the store; None where it needs nothing. Worlds
        are drawn one by one, as they are iterated."""
        return None

    def write(self, observation: Observation, store: "TraceStore", calibration: Mapping[str, Any] | None = None) -> Decision:
        """Tell one statement to a store, whatever it holds already, in one transaction. Returns what was decided about it."""
        with store.together():
            [trace] = store.append([observation.trace()])
            decision = Decision(observation.statement, 0.0, {}, {}, "insert", trace, observation.told)
            store.log([decision])
        return decision

    def teach(
        self, observations: Sequence[Observation], store: "TraceStore", calibration: Mapping[str, Any] | None = None
    ) -> list[Decision]:
        """Tell the statements of one world, in order, in one transaction, then forget what the settings say. Returns what was decided about
        each."""
        with store.together():
            decisions = [self.write(observation, store, calibration) for observation in observations]
            if observations and (forgetting := self.settings.memory.forgetting) != Forgetting():
                new = {decision.trace_id for decision in decisions if decision.trace_id is not None}
                store.forget(observations[0].statement.world, forgetting.ttl, forgetting.merge, new)
        return decisions

    def entangles(self, decisions: Sequence[Decision]) -> bool:
        """Whether what is kept of a world rests on more than one statement at a time, so that it must be taught again without one."""
        return any(decision.raw or decision.action != "insert" for decision in decisions)

    def delete(
        self,
        store: "TraceStore",
        ids: Sequence[int] = (),
        provenance: str | None = None,
        calibration: Mapping[str, Any] | None = None,
    ) -> int:
        """Remove traces for good: those with these ids, and those of a provenance. Returns how many statements were removed. The store then
        equals one that was never told them, but for the numbers of ids; LabError, and nothing is removed, where the store is damaged. Where
        statements were weighed or joined, the others of their worlds are taught again in their order, and what a replay did to these
        worlds is lost. Within a block of the store it is left to the
        caller to `compact` the store then."""
        source = None if provenance is None else normal(provenance, "the provenance")
        if source is not None and not source.strip():
            raise LabError("a provenance is needed, got an empty one, which all have that were told without; give ids in its place")
        store.file.check_seal()
        there = {trace.id: trace for trace in store.traces()}
        going = {number: there[number] for number in set(ids) & there.keys()}
        if missing := sorted(set(ids) - going.keys()):
            raise LabError(f"{store.path} has no trace {missing[0]}; give ids that `traces` returns")
        named = [decision for decision in store.decisions() if source is not None and normal(decision.told.get("provenance", "")) == source]
        affected = [*named, *(decision for decision in store.decisions() if decision.trace_id in going and decision not in named)]
        worlds = dict.fromkeys(decision.statement.world for decision in affected)
        statements = {decision.statement for decision in affected}
        before = sum(store.told(world) for world in worlds)
        with store.together():
            for world in worlds:
                decisions = store.decisions(world)
                if self.settings.memory.forgetting != Forgetting() or self.entangles(decisions):
                    store.erase_world(world)
                    rest = [
                        Observation(decision.statement, **decision.told) for decision in decisions if decision.statement not in statements
                    ]
                    self.teach(rest, store, calibration)
                else:
                    chosen = [decision for decision in decisions if decision.statement in statements and decision.trace_id is not None]
                    for decision in chosen:
                        if decision.trace_id in there and there[decision.trace_id].source != decision.statement.source:
                            raise store.file.damaged(f"trace {decision.trace_id} is not of the statement {decision.statement.source!r}")
                    store.erase([decision.trace_id for decision in chosen if decision.trace_id is not None])
            if (removed := before - sum(store.told(world) for world in worlds)) != len(affected):
                raise store.file.damaged(f"of {len(affected)} statements {removed} could be removed")
        if not store.file.in_transaction:
            store.compact()
        return len(affected)

    def replay(self, world: str, store: "TraceStore") -> Iterator[dict[str, object]]:
        """Rehearse the traces of one world, and change the store. Yields a row for each trace and cycle."""
        raise NotImplementedError

"""A memory of several memories: each recalls from a store of its own, and their rankings are merged.

A question with another in it is asked step by step (self_ask.py). The model reads who did something in the recalled facts; what somebody
has is the answer of a memory. The last step that a memory is confident of is the one that is asked.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Annotated, Any, Self, get_args

from pydantic import Field, StringConstraints, field_validator, model_validator

from hippo_core.errors import LabError
from hippo_core.methods.base import OFF, Count, Memory, MethodSettings, Query, Retrieve, Retrieved, SettingsModel, in_order
from hippo_core.methods.presets import Preset, load_preset, method_of, read_preset
from hippo_core.methods.self_ask import StepAnswer, by_steps, costs, read
from hippo_core.models.kv_storage import KVStorage, StoreKV
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.store import Identity

Name = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]*$")]
CONFIDENCE_THRESHOLD = 0.5  # from which confidence on a part comes first


class ConfidenceCalibration(SettingsModel):
    """The calibration of a part's confidence: a logistic function of the `evidence` for what it retrieved, fitted on validation worlds
    (recipes/fit_part_calibration.py)."""

    bias: float
    confidence: float
    restated: float = 0.0
    joined: float = 0.0
    agreed: float = 0.0

    def of(self, evidence: Mapping[str, float]) -> float:
        """The probability that what the part shows holds the answer."""
        return 1 / (1 + math.exp(-self.bias - math.fsum(getattr(self, name) * value for name, value in evidence.items())))


def evidence(retrieved: Retrieved, others: Iterable[Retrieved]) -> dict[str, float]:
    """The evidence for what a part retrieved: its confidence; whether it answers in its own words (`restated`), from several statements
    (`joined`); and whether another part with a confidence shows one of the same facts (`agreed`)."""
    own = {trace.source for trace in retrieved.shown}
    others_sources = {trace.source for other in others if other.confidence is not None for trace in other.shown}
    return {
        "confidence": retrieved.confidence or 0.0,
        "restated": float(bool(retrieved.restated)),
        "joined": float(retrieved.together and len(retrieved.shown) > 1),
        "agreed": float(not own.isdisjoint(others_sources)),
    }


class CompositeSettings(MethodSettings):
    """`parts`: the presets of its memories by name, in the order in which their rankings are interleaved; how they are delivered is said
    here. `trust`: the calibration of each one's confidence; none: as it says. `traces`: whose are recalled, all, those of one part
    by its name, or off: all is wired and nothing is recalled. `k`: how many traces are shown for a question."""

    parts: Annotated[dict[Name, str], Field(min_length=1)]
    trust: dict[Name, ConfidenceCalibration] = Field(default_factory=dict)
    traces: Annotated[str, OFF] = "all"
    k: Count = 1

    @field_validator("parts")
    @classmethod
    def _memories(cls, parts: dict[str, str]) -> dict[str, str]:
        for name, preset in parts.items():
            try:
                method = method_of(preset, read_preset(preset))
                if issubclass(method, Composite) or not issubclass(method, Memory):
                    kind = "a composite" if issubclass(method, Composite) else "no memory"
                    raise LabError(f"preset {preset} is {kind}; expected a preset of one memory, such as memory/hei_nw")
                load_preset(preset)
            except LabError as error:
                raise ValueError(f"{name}: {error}") from None
        if len(set(parts.values())) < len(parts):
            raise ValueError("two parts are the same preset, which would bring nothing more; leave one out")
        return parts

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.traces not in (legal := ("all", "off", *self.parts)):
            raise ValueError(f"traces is {self.traces!r}; expected {', '.join(legal)}")
        if strange := sorted(self.trust.keys() - self.parts):
            raise ValueError(f"trust names {strange[0]!r}; expected {', '.join(self.parts)}")
        memories = self.memories.items()
        for name, part in memories:
            if part.settings.control != "none":
                raise ValueError(f"part {name} has control={part.settings.control}, which is for all that is shown: give it beside parts")
            if part.settings.decoding != self.decoding:
                raise ValueError(f"part {name} has decoding={part.settings.decoding}; one prompt needs one, here {self.decoding}")
        settings: list[Any] = [part.settings for _, part in memories]
        if len({part_settings.memory.runtime.alter_answers for part_settings in settings}) > 1:
            raise ValueError("some parts are told other answers and some are not, so that none is the store's; alter all of them or none")
        return self

    @property
    def memories(self) -> Mapping[str, Preset]:
        return self.part_presets

    @cached_property
    def part_presets(self) -> Mapping[str, Preset]:
        """The presets of the parts that are recalled, by name; read once."""
        recalled = self.parts if self.traces in ("all", "off") else [self.traces]
        return {name: load_preset(self.parts[name], {"delivery": self.delivery}) for name in recalled}

    @property
    def kv_storage(self) -> KVStorage:
        """The setting of the part that keeps keys and values longest."""
        kept = [part.settings.kv_storage for part in self.memories.values()]
        return max(kept, key=lambda storage: get_args(StoreKV).index(storage.store))

    @property
    def calibrates(self) -> bool:
        return any(part.settings.calibrates for part in self.memories.values())


class Composite(Memory):
    """The memories of its settings, bound to one model, with one delivery."""

    Settings = CompositeSettings

    def __init__(self, lm: Any, settings: CompositeSettings) -> None:
        super().__init__(lm, settings)
        self._parts: dict[str, Any] = {name: part.method(lm, part.settings) for name, part in settings.memories.items()}
        for part in self._parts.values():
            part.delivery = self.delivery  # so that a trace is run to keys and values once, whoever asks for them

    @classmethod
    def with_settings(cls, settings: CompositeSettings) -> type[Self]:
        """The class that declares what the parts declare; their columns with the part's name before them."""
        parts = {name: part.method for name, part in settings.memories.items()}
        columns = tuple(f"{name}_{column}" for name, part in parts.items() for column in part.columns.get("test", ()))
        declared = {
            "steps": _each_once(part.steps for part in parts.values()),
            "weights": _each_once(part.weights for part in parts.values()),
            "columns": {"test": ("inner_questions", *columns)},
            "ignores_window": all(part.ignores_window for part in parts.values()),
            "says_confidence": any(part.says_confidence for part in parts.values()),
        }
        made: Any = type(cls.__name__, (cls,), declared)
        return made

    @property
    def parts(self) -> Mapping[str, Memory]:
        return self._parts

    @property
    def alters_answers(self) -> bool:
        return any(part.alters_answers for part in self.parts.values())

    @property
    def replay_cycles(self) -> int:
        return sum(part.replay_cycles for part in self.parts.values())

    def identity(self) -> "Identity":
        """LabError: it has no store."""
        raise LabError(f"a composite has no store of its own; teach and open its parts: {', '.join(self.settings.parts.values())}")

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        """See `Method`; each part gets the traces that were read from its store (`Trace.memory`)."""
        if self.settings.traces == "off":
            return lambda query: Retrieved((), ())
        retrieves = {name: part.open(_of(name, traces), questions) for name, part in self.parts.items()}

        def ask_parts(query: Query) -> dict[str, Retrieved]:
            return self._calibrated({name: part(query) for name, part in retrieves.items()})

        def merged(query: Query) -> Retrieved:
            retrieved = ask_parts(query)
            columns_by_part = {name: self.parts[name].own_columns("test", result.columns) for name, result in retrieved.items()}
            columns = {f"{name}_{column}": value for name, own in columns_by_part.items() for column, value in own.items()}
            return merge_rankings(list(retrieved.values()), self.settings.k, columns)

        def answered(query: Query, from_text: bool) -> StepAnswer:
            retrieved = list(ask_parts(query).values())
            best = merge_rankings(retrieved, 1)
            return read(self.delivery, query, best) if from_text else StepAnswer(most_confident_answer(retrieved), best)

        def retrieve(query: Query) -> Retrieved:
            steps = by_steps(query, merged, answered)
            best = max((index for index, step in enumerate(steps.retrieved) if (step.confidence or 0.0) >= CONFIDENCE_THRESHOLD), default=0)
            asked = steps.at(best)
            return replace(asked, columns={**asked.columns, "inner_questions": float(best)})

        return retrieve

    def _calibrated(self, retrieved: Mapping[str, Retrieved]) -> dict[str, Retrieved]:
        """What the parts retrieved, with calibrated confidences."""
        calibrated = dict(retrieved)
        for name, trust in self.settings.trust.items():
            if (own := retrieved.get(name)) and own.confidence is not None:
                others = [other for other in retrieved.values() if other is not own]
                calibrated[name] = replace(own, confidence=trust.of(evidence(own, others)))
        return calibrated

    def index_tokens(self, traces: Sequence[Trace]) -> float:
        return math.fsum(part.index_tokens(_of(name, traces)) for name, part in self.parts.items())

    def warm_up(self) -> None:
        for part in self.parts.values():
            part.warm_up()

    def forget(self) -> None:
        super().forget()
        for part in self.parts.values():
            part.forget()


def merge_rankings(retrieved: Sequence[Retrieved], k: int, columns: Mapping[str, float] | None = None) -> Retrieved:
    """Merge what several memories retrieved for one question; a fact of several (`source`) counts once.

    First come the traces that confident memories show (.5 or more), the most confident first, or those of the most confident alone where
    none is; then the rankings of all, interleaved. At most `k` are shown. But a path or a route of the most confident memory is shown whole
    and alone. Costs add up; the confidence is the largest.
    """
    by_confidence = sorted(
        (result for result in retrieved if result.confidence is not None), key=lambda result: result.confidence or 0.0, reverse=True
    )
    confident = [result for result in by_confidence if (result.confidence or 0.0) >= CONFIDENCE_THRESHOLD] or by_confidence[:1]
    first = [trace for result in confident for trace in _ranked(result) if trace in result.shown]
    interleaved = [trace for same_rank in zip_longest(*map(_ranked, retrieved)) for trace in same_rank if trace is not None]
    ranking = tuple(_facts([*first, *interleaved]))
    confidences = [result.confidence for result in retrieved if result.confidence is not None]
    alone = next(
        (result for result in confident[:1] if result.restated or result.rephrased or (result.together and len(result.shown) > 1)), None
    )
    return Retrieved(
        alone.shown if alone else in_order(ranking[:k]),
        ranking,
        **costs(retrieved),
        columns=columns or {},
        confidence=max(confidences, default=None),
        together=alone.together if alone else False,
        restated=alone.restated if alone else "",
        reworded=alone.reworded if alone else False,
        rephrased=alone.rephrased if alone else "",
        replaced=tuple(_facts(trace for result in ([alone] if alone else retrieved) for trace in result.replaced)),
    )


def most_confident_answer(retrieved: Iterable[Retrieved]) -> str:
    """The answer of the most confident memory that has one of its own; "" where none has."""
    own = [result for result in retrieved if result.answer]
    return max(own, key=lambda result: result.confidence or 0.0).answer if own else ""


def _ranked(result: Retrieved) -> tuple[Trace, ...]:
    """All that a memory retrieved, best first; what it shows without a rank comes last."""
    return (*(result.ranking or ()), *result.shown)


def _facts(traces: Iterable[Trace]) -> list[Trace]:
    """The first trace of each fact."""
    first: dict[str, Trace] = {}
    for trace in traces:
        first.setdefault(trace.source, trace)
    return list(first.values())


def _of(name: str, traces: Sequence[Trace]) -> list[Trace]:
    return [trace for trace in traces if trace.memory == name]


def _each_once(names: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))

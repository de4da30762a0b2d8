"""What an episodic memory can be told, checked: every setting with its default, and which settings each phase depends on.

Nothing here imports torch or numpy: a grid is planned from these long before a memory is built.
"""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

Mode = Literal["teach", "replay", "test"]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Weight = Annotated[float, Field(ge=0)]
OFF = BeforeValidator(lambda value: "off" if value is False else value)  # YAML reads a plain off as false

# A test depends on everything; what comes before it on these, so that controls and ablations of recall share one taught store.
TAUGHT = (
    "condition",
    "decoding",
    "traces",
    "memory",
    "episodic.use_sparsity",
    "episodic.use_gate",
    "episodic.code",
    "episodic.gate",
    "episodic.store",
)
PHASES: dict[Mode, tuple[str, ...]] = {
    "teach": TAUGHT,
    "replay": (*TAUGHT, "replay", "episodic.use_completion", "episodic.recall", "episodic.hopfield", "episodic.predictive"),
}


class Part(BaseModel):
    """A part of the settings; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Runtime(Part):
    """`enable_writes`: whether the store takes what it is told. `alter_answers`: facts that are asked for are told with another answer in
    the place of theirs, so that an answer says whether it came from the store."""

    enable_writes: bool = True
    alter_answers: bool = False


class Memory(Part):
    """What holds for every memory."""

    runtime: Runtime = Runtime()


class Code(Part):
    """How a text becomes a key: `winners` of `expansion` dimensions, from several channels."""

    winners: Count = 64
    expansion: Count = 2048
    channels: Annotated[tuple[Literal["words", "grams", "key", "minilm"], ...], Field(min_length=1)] = ("words", "grams", "key")

    @field_validator("channels")
    @classmethod
    def _once(cls, channels: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(channels)) < len(channels):
            raise ValueError("a channel is named twice")
        return channels


class Recall(Part):
    """`candidates`: how many traces the codes bring for completion."""

    candidates: Count = 20


class Hopfield(Part):
    """`steps` of z <- softmax(beta M z) M over the candidates' keys."""

    beta: Annotated[float, Field(gt=0)] = 16.0
    steps: Count = 1


class Predictive(Part):
    """`candidates`: how many traces the model is asked to predict the cue from."""

    candidates: Count = 20


class Gate(Part):
    """S = alpha surprise + beta novelty + gamma reward + delta pin > tau; without a tau, the one that writes `write_rate` of what
    validation worlds tell. `policy` random: as many writes, drawn by chance."""

    alpha: Weight = 1.0
    beta: Weight = 1.0
    gamma: Weight = 0.5
    delta: Weight = 0.8
    write_rate: Share = 0.5
    tau: float | None = None
    policy: Literal["salience", "random"] = "salience"


class Store(Part):
    """`budget`: the share of a world's facts that may be kept (None: all). `kv`: where traces' keys and values are kept once they are
    run: nowhere, in memory while their world is asked about, or on disk below data/generated/kv, where a gate leaves those of what it
    lets through, so that its reading is no work of its own."""

    budget: Share | None = None
    kv: Literal["none", "memory", "disk"] = "memory"


class Episodic(Part):
    """The episodic memory's parts, each of which can be switched off."""

    use_sparsity: bool = True
    use_completion: Annotated[Literal["predictive", "hopfield", "off"], OFF] = "predictive"
    use_gate: bool = False
    code: Code = Code()
    recall: Recall = Recall()
    hopfield: Hopfield = Hopfield()
    predictive: Predictive = Predictive()
    gate: Gate = Gate()
    store: Store = Store()


class Replay(Part):
    """What happens in a sleep: `cycles` times, `rate` of the store (at most `max_items`) is cued with noise and recalled."""

    enabled: bool = True
    cycles: Count = 1
    policy: Literal["uniform", "priority", "spaced"] = "uniform"
    rate: Share = 1.0
    noise_level: Weight = 0.1
    max_items: Count | None = None


class MemoryPreset(Part):
    """A memory with its settings, by the name of its preset.

    `decoding` as that of a baseline; `control`: what stands in the place of what is recalled; `inject`: how a trace reaches the model;
    `k`: how many traces do.
    """

    name: str
    condition: Literal["hei_nw"] = "hei_nw"
    decoding: Literal["short", "plain"] = "short"
    traces: Annotated[Literal["episodic", "off"], OFF] = "episodic"
    control: Literal["none", "empty", "shuffled", "oracle", "random"] = "none"
    inject: Literal["kv", "adapter", "text"] = "kv"
    k: Count = 1
    memory: Memory = Memory()
    episodic: Episodic = Episodic()
    replay: Replay = Replay()

    @property
    def uses_window(self) -> bool:
        """A memory shows what it recalls and never the window, so that the immediate and the delayed regime give the same prompts."""
        return False

    @property
    def encoder(self) -> Literal["minilm"] | None:
        """The published encoder that one of its channels reads, where one does; the key comes from the model that answers."""
        return "minilm" if "minilm" in self.episodic.code.channels else None

    @property
    def calibrates(self) -> bool:
        """Whether a gate must be calibrated on validation worlds; one that writes by chance needs none."""
        return self.episodic.use_gate and self.episodic.gate.policy == "salience"

    def of_phase(self, mode: Mode) -> dict[str, Any]:
        """The settings that this phase depends on, by dotted key, as plain values: all but the name for a test."""
        wanted, told = keys_of(mode), flat(self.model_dump(mode="json", exclude={"name"}))
        return {key: value for key, value in told.items() if key in wanted}


def flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """`{"replay": {"rate": 0.5}}` as `{"replay.rate": 0.5}`."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return found


@cache
def leaves() -> frozenset[str]:
    """The dotted keys of all settings."""
    return frozenset(_leaves(MemoryPreset, ""))


@cache
def keys_of(mode: Mode) -> frozenset[str]:
    """The dotted keys of the settings that a phase depends on."""
    above = PHASES.get(mode)
    return leaves() if above is None else frozenset(key for key in leaves() if f"{key}.".startswith(tuple(f"{one}." for one in above)))


def _leaves(model: type[BaseModel], above: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _leaves(kind, f"{above}{name}.")
        else:
            yield f"{above}{name}"

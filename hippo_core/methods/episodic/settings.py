"""The settings of the episodic memory, in sections. Its presets may set all of them. This module does not import torch."""

import math
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from hippo_core.methods.base import OFF, Count, SettingsModel
from hippo_core.methods.encoded import EncodedSettings, Weight
from hippo_core.models.kv_storage import KVStorage, Precision, StoreKV

Share = Annotated[float, Field(gt=0, le=1)]
Policy = Literal["uniform", "priority", "spaced", "ca2", "ca2_shuffled"]
Term = Literal["surprise", "novelty", "reward", "pin"]
CHANNELS = {"own": ("grams", "key"), "minilm": ("grams", "minilm", "key")}  # that are added up, unless settings say which


class CodeSettings(SettingsModel):
    """How a text becomes a key: `winners` of `expansion` dimensions. `channels`: what cues and traces are compared by; None: as `CHANNELS`
    says. pieces: MiniLM's word pieces one by one (retrieval/pieces.py)."""

    winners: Count = 64
    expansion: Count = 2048
    channels: Annotated[tuple[Literal["words", "grams", "key", "minilm", "pieces"], ...], Field(min_length=1)] | None = None

    @field_validator("channels")
    @classmethod
    def _once(cls, channels: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if channels and len(set(channels)) < len(channels):
            raise ValueError("a channel is named twice")
        return channels


class RecallSettings(SettingsModel):
    """`fusion`: how channels are added up; sum: each standardised among the world's traces; fitted: the weights of `make memory-weights`.
    `versions`: by what else one version of a fact stands before another; read: the model reads the best
    statements alone (methods/versions.py); auto: so with the encoder minilm."""

    fusion: Literal["sum", "fitted"] = "sum"
    recency: Weight = 2.0  # in the sum, against a trace that one told later looks like it, in standard deviations of a channel
    versions: Annotated[Literal["auto", "off", "read"], OFF] = "auto"
    candidates: Count = 20  # of each channel, that fitted weights look at; a third of the traces that are ranked


class HopfieldSettings(SettingsModel):
    """Run `steps` updates z <- softmax(beta M z) M, where the rows of M are the candidates' keys."""

    beta: Annotated[float, Field(gt=0)] = 16.0
    steps: Count = 1


class PredictiveSettings(SettingsModel):
    """`candidates`: from how many traces, one at a time, the model predicts the cue. `below`: it does so only where the sum is less sure
    than this of its best trace; 1: always."""

    candidates: Count = 20
    below: Share = 1.0


class GateSettings(SettingsModel):
    """The gate writes a statement if S = alpha surprise + beta novelty + gamma reward + delta pin > tau. Where `tau` is None, it is chosen
    so that `write_rate` of the statements of validation worlds is written. `policy`: by S (salience), or as many at random, a control."""

    alpha: Weight = 1.0
    beta: Weight = 1.0
    gamma: Weight = 0.5
    delta: Weight = 0.8
    write_rate: Share = 0.5
    tau: float | None = None
    policy: Literal["salience", "random"] = "salience"

    def weight(self, name: Term) -> float:
        """The weight of a standardised term."""
        return {"surprise": self.alpha, "novelty": self.beta, "reward": self.gamma, "pin": self.delta}[name]


class StoreSettings(SettingsModel):
    """What the store may keep. `kv`: where keys and values of traces are kept, computed again elsewhere: nowhere (none), in memory
    while their world is asked about, or on disk below data/generated/kv, where a gate saves those that it has computed."""

    budget: Share | None = None  # of a world's facts; None keeps all
    kv: StoreKV = KVStorage.store
    kv_precision: Precision = KVStorage.precision  # what they are rounded to; int8: keys by channel, values by token
    kv_memory_mb: Count = KVStorage.memory_mb  # MiB at most, here and on disk; what was not used for longest goes first
    kv_disk_mb: Count = KVStorage.disk_mb


class EpisodicSection(SettingsModel):
    """The parts of the episodic memory. Each can be switched off."""

    use_sparsity: bool = True
    use_completion: Annotated[Literal["predictive", "hopfield", "off"], OFF] = "off"
    use_gate: bool = False
    code: CodeSettings = CodeSettings()
    recall: RecallSettings = RecallSettings()
    hopfield: HopfieldSettings = HopfieldSettings()
    predictive: PredictiveSettings = PredictiveSettings()
    gate: GateSettings = GateSettings()
    store: StoreSettings = StoreSettings()


class ReplaySettings(SettingsModel):
    """What happens in a sleep, `cycles` times: the share `rate` of the store, rounded up, and at most `max_items` traces are cued with
    noise and recalled. `noise_level`: how strongly cues are corrupted, and the standard deviation of the noise on priorities (0 ... 1), by
    which cycles differ and no trace is passed over every time."""

    enabled: bool = True
    cycles: Count = 1
    policy: Policy = "uniform"
    rate: Annotated[float, Field(ge=0, le=1)] = 1.0
    noise_level: Weight = 0.1
    max_items: Annotated[int, Field(ge=0)] | None = None

    def count(self, size: int) -> int:
        """The most traces that a cycle rehearses out of `size`."""
        share = math.ceil(self.rate * size - 1e-9)
        return share if self.max_items is None else min(share, self.max_items)


class HeiNWSettings(EncodedSettings):
    """All settings of HeiNW. `encoder`: whose states the key is made of, those of the first blocks of the model that answers (own) or of
    all-MiniLM-L6-v2, whose vectors are a channel, too (minilm). `traces` off: nothing is stored and nothing recalled."""

    traces: Annotated[Literal["episodic", "off"], OFF] = "episodic"
    episodic: EpisodicSection = EpisodicSection()
    replay: ReplaySettings = ReplaySettings()

    @property
    def reads_versions(self) -> bool:
        """Whether the model reads the best statements alone, to say which of several versions of a fact holds."""
        versions = self.episodic.recall.versions
        return versions == "read" or (versions == "auto" and self.encoder == "minilm")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("minilm",) if self.reads_versions else super().requires

    @property
    def calibrates(self) -> bool:
        """Whether validation worlds are needed: the salience gate is calibrated on them, the random gate is not."""
        return self.episodic.use_gate and self.episodic.gate.policy == "salience"

    @property
    def keeps_kv(self) -> bool:
        """Completion by prediction and a gate run traces, too."""
        return super().keeps_kv or self.episodic.use_gate or self.episodic.use_completion == "predictive"

    @property
    def kv_storage(self) -> KVStorage:
        store = self.episodic.store
        return KVStorage(store.kv, store.kv_precision, store.kv_memory_mb, store.kv_disk_mb)

    @model_validator(mode="after")
    def _check_sections(self) -> "HeiNWSettings":
        if lacking := sorted({"minilm", "pieces"} & set(self.channels)) if self.encoder != "minilm" else []:
            raise ValueError(f"the channel {lacking[0]} needs encoder=minilm")
        if "pieces" in self.channels and self.episodic.recall.fusion != "sum":
            raise ValueError("the channel pieces needs recall.fusion=sum: no weights were fitted for it")
        if self.abstention == "method" and not self.says_confidence:
            raise ValueError("abstention=method needs recall.fusion=sum and use_completion=off: a confidence was fitted for the sum alone")
        if self.completes_in_doubt and self.episodic.recall.fusion != "sum":
            raise ValueError("predictive.below needs recall.fusion=sum: a confidence was fitted for the sum alone; or set it to 1")
        return self

    @property
    def completes_in_doubt(self) -> bool:
        """Whether completion is used only where the recall's confidence is low."""
        return self.episodic.use_completion == "predictive" and self.episodic.predictive.below < 1

    @property
    def says_confidence(self) -> bool:
        """Whether its recall gives a confidence."""
        return self.episodic.recall.fusion == "sum" and self.episodic.use_completion == "off"

    @property
    def channels(self) -> tuple[Literal["words", "grams", "key", "minilm", "pieces"], ...]:
        """What cues and traces are compared by."""
        return self.episodic.code.channels or CHANNELS[self.encoder]  # type: ignore[return-value]

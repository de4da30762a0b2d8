"""The settings of the episodic memory, in sections, as its presets may give them. Importing this loads no torch."""

import math
from typing import Annotated, Literal

from pydantic import Field, field_validator

from hippo_core.methods.base import OFF, Count, MemorySettings, SettingsModel

Share = Annotated[float, Field(gt=0, le=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Policy = Literal["uniform", "priority", "spaced"]
Term = Literal["surprise", "novelty", "reward", "pin"]


class CodeSettings(SettingsModel):
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


class RecallSettings(SettingsModel):
    """`candidates`: how many traces the codes bring for completion."""

    candidates: Count = 20


class HopfieldSettings(SettingsModel):
    """`steps` of z <- softmax(beta M z) M over the candidates' keys."""

    beta: Annotated[float, Field(gt=0)] = 16.0
    steps: Count = 1


class PredictiveSettings(SettingsModel):
    """`candidates`: how many traces the model is asked to predict the cue from."""

    candidates: Count = 20


class GateSettings(SettingsModel):
    """S = alpha surprise + beta novelty + gamma reward + delta pin > tau; without a tau, the one that writes `write_rate` of what
    validation worlds tell. `policy` random: as many writes, drawn by chance."""

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
    """`budget`: the share of a world's facts that may be kept (None: all). `kv`: where traces' keys and values are kept once they are
    run: nowhere, in memory while their world is asked about, or on disk below data/generated/kv, where a gate leaves those of what it
    lets through, so that its reading is no work of its own."""

    budget: Share | None = None
    kv: Literal["none", "memory", "disk"] = "memory"


class EpisodicSection(SettingsModel):
    """The episodic memory's parts, each of which can be switched off."""

    use_sparsity: bool = True
    use_completion: Annotated[Literal["predictive", "hopfield", "off"], OFF] = "predictive"
    use_gate: bool = False
    code: CodeSettings = CodeSettings()
    recall: RecallSettings = RecallSettings()
    hopfield: HopfieldSettings = HopfieldSettings()
    predictive: PredictiveSettings = PredictiveSettings()
    gate: GateSettings = GateSettings()
    store: StoreSettings = StoreSettings()


class ReplaySettings(SettingsModel):
    """What happens in a sleep: `cycles` times, `rate` of the store (rounded up, at most `max_items`) is cued with noise and recalled.
    `noise_level`: by which cues are corrupted, and the standard deviation of Gaussian noise on the priorities (0 ... 1), so that cycles
    differ and no trace is always passed over."""

    enabled: bool = True
    cycles: Count = 1
    policy: Policy = "uniform"
    rate: Annotated[float, Field(ge=0, le=1)] = 1.0
    noise_level: Weight = 0.1
    max_items: Annotated[int, Field(ge=0)] | None = None

    def count(self, size: int) -> int:
        """How many of `size` traces a cycle rehearses, at most."""
        share = math.ceil(self.rate * size - 1e-9)
        return share if self.max_items is None else min(share, self.max_items)


class HeiNWSettings(MemorySettings):
    """All settings of HeiNW. `traces` off: nothing is stored and nothing recalled."""

    delivery: str = "kv"
    traces: Annotated[Literal["episodic", "off"], OFF] = "episodic"
    episodic: EpisodicSection = EpisodicSection()
    replay: ReplaySettings = ReplaySettings()

    @property
    def calibrates(self) -> bool:
        """A gate by salience is calibrated on validation worlds; one that writes by chance needs none."""
        return self.episodic.use_gate and self.episodic.gate.policy == "salience"

    @property
    def encoder(self) -> Literal["minilm"] | None:
        """The published encoder that one of the channels reads, or None; the key comes from the model that answers."""
        return "minilm" if "minilm" in self.episodic.code.channels else None

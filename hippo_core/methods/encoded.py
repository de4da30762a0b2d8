"""The settings of memories that compare texts by an encoder. This module does not import torch."""

import os
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field

from hippo_core.errors import LabError
from hippo_core.methods.base import Abstention, Count, MemorySettings
from hippo_core.models.packages.pins import available

Encoder = Literal["own", "minilm"]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
UNKNOWN_BELOW = 0.1  # a confidence: chosen on validation worlds, where hardly any right answer is lost (docs/relational.md)
ENCODER = "HIPPO_ENCODER"  # the environment variable that says what `encoder: auto` stands for


def default_encoder() -> Encoder:
    """What `encoder: auto` stands for: minilm where it is on the disk, own elsewhere, or what HIPPO_ENCODER says."""
    value = os.environ.get(ENCODER, "")
    if value and value not in get_args(Encoder):
        raise LabError(f"{ENCODER}={value} is neither own nor minilm; unset it or give one of them")
    return value or ("own" if available("minilm") else "minilm")  # type: ignore[return-value]


AutoEncoder = Annotated[Encoder, BeforeValidator(lambda encoder: default_encoder() if encoder == "auto" else encoder)]


class EncodedSettings(MemorySettings):
    """The settings of a memory that an encoder helps. `encoder`: own, what the memory has itself; minilm: all-MiniLM-L6-v2 beside it; auto:
    minilm where it is on the disk. What it shows is put before the model by its keys and values, unless `delivery` says otherwise."""

    encoder: AutoEncoder = Field(default="auto", validate_default=True)  # type: ignore[assignment]
    delivery: str = "kv"
    unknown_below: Share = UNKNOWN_BELOW


class StructuredSettings(EncodedSettings):
    """The settings of a memory that reads statements into a structure, a graph or a map. Where that is sure of an answer, "unknown" is not
    the model's to say (`abstention`); where it is sure that it has none, "unknown" is the answer (`unknown_below`); where it does not say,
    the `k` likest statements are shown and the model decides."""

    abstention: Abstention = "either"
    k: Count = 3

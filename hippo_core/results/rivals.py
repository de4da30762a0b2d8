"""Which retrieval a claim is made against: one with a published encoder, wherever one was measured."""

from collections.abc import Sequence
from typing import TypeVar

Option = TypeVar("Option")

OWN_VECTORS = "rag with the model's own vectors"  # what a verdict says where there is no other


def rivals(options: Sequence[Option], encoders: Sequence[str | None]) -> list[Option]:
    """The options that may stand for the best rag: those with the encoder `own` only where none has the encoder `minilm`."""
    published = "minilm" in encoders
    return [option for option, encoder in zip(options, encoders, strict=True) if not (published and encoder == "own")]

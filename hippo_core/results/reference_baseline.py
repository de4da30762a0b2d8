"""Which retrieval a claim is made against: one of the plain three, with a published encoder wherever one was measured.

Other rags are rows of their own: they tell apart what a memory owes to better recall, and are no rival that claims are made over.
"""

from collections.abc import Sequence
from typing import TypeVar

Option = TypeVar("Option")

PLAIN_RAGS = ("baselines/rag_bm25", "baselines/rag_dense", "baselines/rag_hybrid")  # those that "the best rag" is chosen from
OWN_VECTORS = "rag with the model's own vectors"  # what a verdict says where there is no other


def rivals(options: Sequence[Option], encoders: Sequence[str | None]) -> list[Option]:
    """The options that may stand for the best rag: those with the encoder `own` only where none has the encoder `minilm`."""
    published = "minilm" in encoders
    return [option for option, encoder in zip(options, encoders, strict=True) if not (published and encoder == "own")]

"""A loaded model in one value, what a record says of it, and token rows made ready for it."""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hippo_core.models.spec import ModelSpec
from hippo_core.models.template import Template, as_text


@dataclass(frozen=True)
class Shot:
    """A worked example that stands before every question."""

    context: tuple[str, ...]
    question: str
    answer: str


@dataclass(frozen=True)
class UnknownTokens:
    """How a tokenizer spells "unknown" where a model's answers begin."""

    first: tuple[int, ...]  # that begin it, in all spellings
    word: tuple[int, ...]  # all tokens of one spelling


@dataclass(frozen=True)
class LanguageModel:
    """A loaded model with all that is needed to ask it: `stop_ids` end an answer, `shots` stand before every question."""

    model: Any
    tokenizer: Any
    spec: ModelSpec
    device: torch.device
    template: Template
    stop_ids: tuple[int, ...]
    shots: tuple[Shot, ...] = ()
    unknown: UnknownTokens | None = None  # None: looked up when it is needed

    @property
    def config(self) -> Any:
        """The configuration of the text decoder."""
        return self.model.config.get_text_config(decoder=True)

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt, as `render` makes it: it has its special tokens, none is added."""
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def encode_text(self, text: str) -> list[int]:
        """Token ids of what somebody wrote: none of them is a special token."""
        return self.encode(as_text(self.tokenizer, text))


def describe(lm: LanguageModel) -> dict[str, Any]:
    """What a record says of the model that was really used."""
    stops = lm.tokenizer.convert_ids_to_tokens(list(lm.stop_ids))
    return {
        **lm.spec.model_dump(exclude={"chat_template"}),
        "architecture": type(lm.model).__name__,
        "parameters": lm.model.num_parameters(),
        "layers": lm.config.num_hidden_layers,
        "used_dtype": str(lm.model.dtype).removeprefix("torch."),
        "device": str(lm.device),
        "chat_template": lm.template.origin,
        "stop_tokens": stops,
    }


def by_length(rows: Sequence[Sized], batch_size: int, longest_first: bool = False) -> Iterator[list[int]]:
    """The numbers of rows, `batch_size` at a time, rows of like lengths together."""
    order = sorted(range(len(rows)), key=lambda row: -len(rows[row]) if longest_first else len(rows[row]))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def pad_left(lm: LanguageModel, rows: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of token ids as (ids, mask, positions), each [rows, longest] int64: padded on the left, positions from 0 at the first token."""
    width = max(map(len, rows))
    ids = torch.tensor([[lm.tokenizer.pad_token_id] * (width - len(row)) + row for row in rows], device=lm.device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=lm.device)
    return ids, mask, (mask.cumsum(1) - 1).clamp(min=0)

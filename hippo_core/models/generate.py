"""Greedy generation. A shared beginning of prompts is run once, keys and values are cached, logits are made for the last position only."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from transformers import DynamicCache

from hippo_core.errors import LabError
from hippo_core.models.abstention import first_tokens, unknown_margins
from hippo_core.models.kv import StoredKV, inputs
from hippo_core.models.kv_storage import MB, shape_of
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prefix import Shared


@dataclass(frozen=True)
class Generation:
    """An answer."""

    text: str  # without special tokens, up to the first stop string
    tokens: tuple[int, ...]  # all that the model produced, with the one that ended the answer
    prompt_tokens: int  # of the whole prompt
    computed_tokens: float  # run for the prompt; those run once for several rows are divided among them
    generated_tokens: int
    latency_ms: float  # the time of its batch divided by the batch size, and its share of what was run once
    first_logprob: float  # in nats, of the first token, whatever was held back
    cut: bool = field(default=False, kw_only=True)  # whether the limit of new tokens stopped it, and not the model
    decided: bool = field(default=False, kw_only=True)  # from outside: the model chose none of its tokens
    unknown_margin: float = field(default=math.nan, kw_only=True)  # nats, see `unknown_margins`; NaN where nothing says so


class BatchState(Protocol):
    """State of the rows of a batch that is not in their cache."""

    def keep(self, index: Tensor) -> None:
        """Keep only the rows `index`, `(rows,)`, int64."""
        ...


class First(NamedTuple):
    """How an answer began: see the fields of `Generation`."""

    logprob: float
    unknown_margin: float
    decided: bool


@dataclass
class DecodingState:
    """Sequences in the middle of generation, one per row. What says how answers began is of all rows of the start [S]."""

    cache: DynamicCache
    mask: Tensor  # [B, T]: the positions of the cache that are seen, with the one filled next
    token: Tensor  # [B], to feed next
    position: Tensor  # [B], of that token
    first_logprob: Tensor  # [S]
    unknown_margin: Tensor  # [S]
    decided: Sequence[tuple[int, ...]]  # the tokens of each answer that was decided from outside [S], else none
    batch_state: BatchState | None = None

    @property
    def first(self) -> list["First"]:
        """How each answer began, for all rows of the start."""
        decided = [bool(tokens) for tokens in self.decided]
        return list(map(First, self.first_logprob.tolist(), self.unknown_margin.tolist(), decided))

    def keep(self, rows: list[int]) -> None:
        """Keep only these rows."""
        index = torch.tensor(rows, device=self.token.device)
        self.cache.batch_select_indices(index)
        self.mask, self.token, self.position = self.mask[index], self.token[index], self.position[index]
        if self.batch_state:
            self.batch_state.keep(index)


def generate(
    lm: LanguageModel,
    prompts: Sequence[str],
    max_new_tokens: int,
    batch_size: int = 32,
    stop: Sequence[str] = (),
    penalties: Sequence[float | None] | None = None,
) -> list[Generation]:
    """Answer each prompt, which contains its own special tokens, by greedy decoding; one `Generation` a prompt, in order.

    An answer ends at one of the model's stop tokens, after `max_new_tokens`, or at a string of `stop` that follows words. Answers do not
    depend on the batch. `penalties` say how far "unknown" is held back; see `first_tokens`. LabError for an empty prompt.
    """
    rows = [lm.encode(prompt) for prompt in prompts]
    if not all(rows):
        raise LabError("an empty prompt: there is nothing for the model to go on from")
    answers: dict[int, Generation] = {}
    begin = time.perf_counter()
    shared = Shared(lm, rows, batch_size)
    for_all = (time.perf_counter() - begin) * 1000 / max(1, len(rows))
    for batch in shared.batches:
        begin = time.perf_counter()
        tails, before = shared.split(batch)
        running = prefill(lm, tails, before, spare=max_new_tokens, penalties=penalties and [penalties[row] for row in batch.rows])
        produced = continue_greedily(lm, running, max_new_tokens, stop)
        latency = for_all + (time.perf_counter() - begin) * 1000 / len(batch.rows)
        for row, tokens, first in zip(batch.rows, produced, running.first, strict=True):
            answers[row] = to_generation(lm, tokens, first, stop, len(rows[row]), shared.computed(batch, row), latency)
    return [answers[row] for row in range(len(rows))]


@torch.inference_mode()
def prefill(
    lm: LanguageModel,
    rows: Sequence[list[int]],
    before: Sequence[Sequence[StoredKV]] | None = None,
    starts: Sequence[int] | None = None,
    spare: int = 0,
    hidden: Sequence[range] | None = None,
    penalties: Sequence[float | None] | None = None,
) -> DecodingState:
    """Run rows of token ids after the KV of `before` (see `inputs`) and choose the first token of each answer (see `first_tokens`)."""
    arguments = inputs(lm, rows, before, starts, spare, hidden)
    logprobs = lm.model(**arguments, logits_to_keep=1).logits[:, -1].float().log_softmax(-1)
    token, decided = first_tokens(lm, logprobs, penalties)
    logprob = logprobs.gather(1, token[:, None])[:, 0]
    position = arguments["position_ids"][:, -1] + 1
    margin = unknown_margins(lm, logprobs)
    return DecodingState(arguments["past_key_values"], arguments["attention_mask"], token, position, logprob, margin, decided)


@torch.inference_mode()
def continue_greedily(lm: LanguageModel, running: DecodingState, max_new_tokens: int, stop: Sequence[str] = ()) -> list[list[int]]:
    """The token ids of each row's answer. Finished rows leave when they are half of the batch, as removing them copies the cache."""
    produced = [list(answer) for answer in running.decided]
    alive = list(range(len(produced)))  # the answer that each row of the batch belongs to
    ended = {answer for answer, tokens in enumerate(produced) if tokens}
    for step in range(max_new_tokens):
        for answer, token in zip(alive, running.token.tolist(), strict=True):
            if answer not in ended:
                produced[answer].append(token)
                if token in lm.stop_ids or (stop and _cut(_decode(lm, produced[answer]), stop) is not None):
                    ended.add(answer)
        unfinished = [row for row, answer in enumerate(alive) if answer not in ended]
        if not unfinished or step + 1 == max_new_tokens:
            break
        if len(unfinished) * 2 <= len(alive):
            running.keep(unfinished)
            alive = [alive[row] for row in unfinished]
        running.mask = torch.cat([running.mask, running.mask.new_ones(len(alive), 1)], dim=1)
        ids, positions, cache = running.token[:, None], running.position[:, None], running.cache
        out = lm.model(input_ids=ids, attention_mask=running.mask, position_ids=positions, past_key_values=cache, use_cache=True)
        running.token, running.position = out.logits[:, -1].float().argmax(-1), running.position + 1
    return produced


def to_generation(
    lm: LanguageModel,
    tokens: list[int],
    first: First,
    stop: Sequence[str],
    prompt_tokens: int,
    computed_tokens: float,
    latency_ms: float,
) -> Generation:
    """The answer of these tokens: their text without special tokens, up to the first stop string that follows words."""
    text = _decode(lm, tokens)
    cut = _cut(text, stop)
    words = (text if cut is None else cut).strip()
    ended = first.decided or cut is not None or tokens[-1] in lm.stop_ids
    counts = prompt_tokens, computed_tokens, len(tokens)
    flags = {"decided": first.decided, "unknown_margin": first.unknown_margin}
    return Generation(words, tuple(tokens), *counts, latency_ms, first.logprob, cut=not ended, **flags)


def kv_cache_mb(config: Any, tokens: int, bytes_per_value: int) -> float:
    """The size in MiB of the keys and values of `tokens` tokens of one sequence."""
    return shape_of(config, bytes_per_value).kv_bytes(tokens, "model") / MB


def _decode(lm: LanguageModel, tokens: list[int]) -> str:
    return lm.tokenizer.decode(tokens, skip_special_tokens=True)


def _cut(text: str, stop: Sequence[str]) -> str | None:
    """The text before the first stop string that follows words, or None if there is no such stop string."""
    text = text.lstrip()
    cuts = [position for position in (text.find(string) for string in stop) if position > 0]
    return text[: min(cuts)] if cuts else None

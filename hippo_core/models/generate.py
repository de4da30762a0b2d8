"""Greedy generation. A shared beginning of prompts is run once, keys and values are cached, logits are made for the last position only."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

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
        of_batch = penalties and [penalties[row] for row in batch.rows]
        made = answer_batch(lm, tails, before, max_new_tokens, stop, penalties=of_batch)
        latency = for_all + (time.perf_counter() - begin) * 1000 / len(batch.rows)
        for row, answer in zip(batch.rows, made, strict=True):
            computed = shared.computed(batch, row)
            answers[row] = replace(answer, prompt_tokens=len(rows[row]), computed_tokens=computed, latency_ms=latency)
    return [answers[row] for row in range(len(rows))]


@torch.inference_mode()
def answer_batch(
    lm: LanguageModel,
    rows: Sequence[list[int]],
    before: Sequence[Sequence[StoredKV]] | None,
    max_new_tokens: int,
    stop: Sequence[str] = (),
    starts: Sequence[int] | None = None,
    hidden: Sequence[range] | None = None,
    penalties: Sequence[float | None] | None = None,
    batch_state: BatchState | None = None,
) -> list[Generation]:
    """The answers to rows of token ids after the KV of `before` (see `inputs`), which are run together; what they cost is left to fill in.
    Finished rows leave when they are half of the batch, as removing them copies the cache."""
    arguments = inputs(lm, rows, before, starts, max_new_tokens, hidden)
    logprobs = lm.model(**arguments, logits_to_keep=1).logits[:, -1].float().log_softmax(-1)
    token, decided = first_tokens(lm, logprobs, penalties)
    first_logprobs, margins = logprobs.gather(1, token[:, None])[:, 0].tolist(), unknown_margins(lm, logprobs).tolist()

    cache, mask, position = arguments["past_key_values"], arguments["attention_mask"], arguments["position_ids"][:, -1] + 1
    produced = [list(answer) for answer in decided]
    alive = list(range(len(produced)))  # the answer that each row of the batch belongs to
    ended = {answer for answer, tokens in enumerate(produced) if tokens}
    for step in range(max_new_tokens):
        for answer, new_token in zip(alive, token.tolist(), strict=True):
            if answer not in ended:
                produced[answer].append(new_token)
                if new_token in lm.stop_ids or (stop and _cut(_decode(lm, produced[answer]), stop) is not None):
                    ended.add(answer)
        unfinished = [row for row, answer in enumerate(alive) if answer not in ended]
        if not unfinished or step + 1 == max_new_tokens:
            break
        if len(unfinished) * 2 <= len(alive):
            index = torch.tensor(unfinished, device=token.device)
            cache.batch_select_indices(index)
            mask, token, position = mask[index], token[index], position[index]
            if batch_state:
                batch_state.keep(index)
            alive = [alive[row] for row in unfinished]
        mask = torch.cat([mask, mask.new_ones(len(alive), 1)], dim=1)
        ids, positions = token[:, None], position[:, None]
        out = lm.model(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
        token, position = out.logits[:, -1].float().argmax(-1), position + 1
    of_answers = zip(produced, first_logprobs, margins, map(bool, decided), strict=True)
    return [_generation(lm, tokens, stop, logprob, margin, was_decided) for tokens, logprob, margin, was_decided in of_answers]


def _generation(
    lm: LanguageModel, tokens: list[int], stop: Sequence[str], first_logprob: float, unknown_margin: float, decided: bool
) -> Generation:
    """The answer of these tokens: their text without special tokens, up to the first stop string that follows words."""
    text = _decode(lm, tokens)
    cut = _cut(text, stop)
    words = (text if cut is None else cut).strip()
    ended = decided or cut is not None or tokens[-1] in lm.stop_ids
    flags = {"decided": decided, "unknown_margin": unknown_margin}
    return Generation(words, tuple(tokens), 0, 0.0, len(tokens), 0.0, first_logprob, cut=not ended, **flags)


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

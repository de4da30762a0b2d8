"""What a model makes of given text: log-likelihood of continuations, loss a token and a byte, and the states of its first blocks."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import DynamicCache

from hippo_core.errors import LabError
from hippo_core.models.kv import KV, inputs
from hippo_core.models.language_model import LanguageModel, by_length, pad_left
from hippo_core.models.prefix import Shared

LOGITS = 2**25  # of text_loss at a time: 128 MiB in float32


@dataclass(frozen=True)
class Likelihood:
    """A continuation after its context."""

    nats: float  # the sum of log-probabilities
    tokens: int
    greedy: bool  # whether each token was the likeliest
    computed_tokens: float = field(compare=False)  # those run once for several pairs are divided among them


@dataclass(frozen=True)
class TextLoss:
    """The loss over whole texts: `nats` in sum, over `tokens` predicted tokens and `bytes` bytes of UTF-8."""

    nats: float
    tokens: int
    bytes: int

    @property
    def per_token(self) -> float:
        return self.nats / self.tokens

    @property
    def per_byte(self) -> float:
        return self.nats / self.bytes


def log_likelihood(lm: LanguageModel, contexts: Sequence[str], continuations: Sequence[str], batch_size: int = 16) -> list[Likelihood]:
    """log p(continuation | context) of each pair, in order. Both are tokenised as one text; spaces that end the context count to the
    continuation. An empty context becomes what opens a text."""
    return token_likelihood(lm, [_split(lm, context, more) for context, more in zip(contexts, continuations, strict=True)], batch_size)


@torch.inference_mode()
def token_likelihood(lm: LanguageModel, pairs: Sequence[tuple[list[int], list[int]]], batch_size: int = 16) -> list[Likelihood]:
    """log p(continuation | context) of each pair of rows of token ids, in order. LabError where one of them has no token."""
    if not all(context and more for context, more in pairs):
        raise LabError("a pair without a token in its context or its continuation: there is nothing to predict, or to predict it from")
    by_tokens: dict[tuple[int, ...], list[int]] = {}  # pairs by what is read for them: their last token is predicted, not read
    for pair, (context, more) in enumerate(pairs):
        by_tokens.setdefault(tuple((context + more)[:-1]), []).append(pair)
    askers = list(by_tokens.values())
    keep = [max(len(pairs[pair][1]) for pair in here) for here in askers]
    shared = Shared(lm, [list(row) for row in by_tokens], batch_size, keep)
    results: dict[int, Likelihood] = {}
    for batch in shared.batches:
        arguments = inputs(lm, *shared.split(batch))
        out = lm.model(**arguments, logits_to_keep=max(keep[row] for row in batch.rows))
        for row, logits in zip(batch.rows, out.logits, strict=True):
            computed = shared.computed(batch, row) / len(askers[row])
            results |= {pair: _likelihood(logits, pairs[pair][1], computed) for pair in askers[row]}
    return [results[pair] for pair in range(len(pairs))]


@torch.inference_mode()
def log_likelihood_behind(
    lm: LanguageModel, before: Sequence[Sequence[KV]], starts: Sequence[int], rows: Sequence[list[int]], batch_size: int = 64
) -> list[list[float]]:
    """log p, in nats, of every token of a row but its first, behind the KV of `before`; the row's first token stands at `starts`. The first
    token is the last one of the context, read again so that the token after it is predicted too."""
    nats: list[list[float]] = []
    for start in range(0, len(rows), batch_size):
        here = slice(start, start + batch_size)
        arguments = inputs(lm, rows[here], before[here], starts[here])
        logits = lm.model(**arguments).logits[:, :-1].float().log_softmax(-1)
        width = logits.shape[1]
        for row, chosen in zip(rows[here], logits, strict=True):
            targets = torch.tensor(row[1:], device=chosen.device)
            nats.append(chosen[width - len(targets) :].gather(1, targets[:, None])[:, 0].tolist())
    return nats


@torch.inference_mode()
def text_loss(lm: LanguageModel, texts: Sequence[str], window: int | None = None, batch_size: int = 4) -> TextLoss:
    """The loss of all tokens of the texts, each text opened as the tokenizer opens one.

    A text longer than `window` tokens (default: the context limit) is cut into windows that do not overlap; a window sees the last token of
    the one before it, so every token is predicted once.
    """
    opening = lm.encode(lm.template.begin)
    rows = [row for text in texts for row in _windows(opening + lm.encode_text(text), window or lm.spec.context_limit)]
    if not rows:
        raise LabError("no token to predict: the texts are empty")
    rows.sort(key=len, reverse=True)
    batches = (rows[start : start + batch_size] for start in range(0, len(rows), batch_size))
    nats = math.fsum(_nats(lm, batch) for batch in batches)
    return TextLoss(nats, sum(len(row) - 1 for row in rows), sum(len(text.encode()) for text in texts))


def _nats(lm: LanguageModel, rows: list[list[int]]) -> float:
    """The loss over all tokens of the rows but their first, in sum, a few positions at a time: logits over a vocabulary take memory."""
    ids, mask, positions = pad_left(lm, rows)
    cache = DynamicCache(config=lm.model.config)
    step = max(1, LOGITS // (len(rows) * lm.config.vocab_size))
    nats = 0.0
    for start in range(0, ids.shape[1] - 1, step):
        end = min(start + step, ids.shape[1] - 1)
        here = slice(start, end)
        out = lm.model(ids[:, here], attention_mask=mask[:, :end], position_ids=positions[:, here], past_key_values=cache, use_cache=True)
        losses = cross_entropy(out.logits.flatten(0, 1).float(), ids[:, start + 1 : end + 1].flatten(), reduction="none")
        nats += (losses.double() * mask[:, here].flatten()).sum().item()
    return nats


def opener(lm: LanguageModel) -> int:
    """The token that opens a text; the one that ends texts where there is none."""
    token = lm.tokenizer.bos_token_id
    return lm.tokenizer.eos_token_id if token is None else token


def _split(lm: LanguageModel, context: str, continuation: str) -> tuple[list[int], list[int]]:
    spaces = len(context) - len(context.rstrip())
    if spaces:
        context, continuation = context[:-spaces], context[-spaces:] + continuation
    tokens, before = lm.encode(context + continuation), lm.encode(context)
    more = tokens[len(before) :]
    if not more:
        raise LabError(f"a continuation without a token: {continuation!r} after {context[-40:]!r}")
    return tokens[: len(before)] or [opener(lm)], more


def _likelihood(logits: Tensor, tokens: list[int], computed: float) -> Likelihood:
    """`logits` [K, V] end with those that predict the last token."""
    chosen = logits[-len(tokens) :].float().log_softmax(-1)
    target = torch.tensor(tokens, device=chosen.device)
    nats = chosen.gather(1, target[:, None]).double().sum().item()
    return Likelihood(nats, len(tokens), bool((chosen.argmax(-1) == target).all()), computed)


def _windows(tokens: list[int], window: int) -> Iterator[list[int]]:
    """Pieces whose tokens but the first are to be predicted, each at most `window` of those; together they predict each token once."""
    for start in range(0, len(tokens) - 1, window):
        yield tokens[start : start + window + 1]


class _Enough(Exception):
    """The last block that was asked for has been reached; those behind it are not run."""


@torch.inference_mode()
def early_states(lm: LanguageModel, texts: Sequence[str], blocks: Sequence[int], batch_size: int = 64) -> list[Tensor]:
    """What goes into each of `blocks` (0: the embeddings), side by side: a text's states [T, len(blocks) * D], fp32, on the CPU.

    A special token opens each text; its states are left out, as the first position says nothing of the words.
    LabError for a block that the model does not have.
    """
    layers = lm.model.get_decoder().layers
    if wrong := [block for block in blocks if not 0 <= block < len(layers)]:
        raise LabError(f"model {lm.spec.name} has blocks 0 to {len(layers) - 1}, got {wrong[0]}")
    opening, rows = [opener(lm)], [lm.encode_text(text) for text in texts]
    states: dict[int, Tensor] = {}
    for batch in by_length(rows, batch_size, longest_first=True):
        ids, mask, positions = pad_left(lm, [opening + rows[row] for row in batch])
        wanted = [layers[block] for block in blocks]
        with _caught(wanted) as caught, suppress(_Enough):
            lm.model.get_decoder()(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False)
        made = torch.cat([caught[id(layer)].float() for layer in wanted], dim=-1)
        states |= {row: state[state.shape[0] - len(rows[row]) :].cpu() for row, state in zip(batch, made, strict=True)}
    return [states[row] for row in range(len(rows))]


@contextmanager
def _caught(layers: Sequence[Any]) -> Iterator[dict[int, Tensor]]:
    """The input of each of these blocks, by the block's identity; a forward pass ends when it has all."""
    caught: dict[int, Tensor] = {}

    def catch(layer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        caught[id(layer)] = arguments[0] if arguments else named["hidden_states"]
        if len(caught) == len({*map(id, layers)}):
            raise _Enough

    hooks = [layer.register_forward_pre_hook(catch, with_kwargs=True) for layer in layers]
    try:
        yield caught
    finally:
        for hook in hooks:
            hook.remove()

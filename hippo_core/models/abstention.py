"""How a model says "unknown": the tokens that begin this answer, and how far they are held back at the first token of any answer."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from hippo_core.models.language_model import LanguageModel, UnknownTokens
from hippo_core.models.prompt import render

UNKNOWN = "unknown"
NEVER, ALWAYS = math.inf, -math.inf  # penalties: "unknown" is never the answer, or always


def unknown_tokens(lm: LanguageModel) -> UnknownTokens:
    """The tokens of "unknown" and "Unknown", with and without a space before them, behind the model's own prompts of both decodings.

    Where whole words are tokens, only these count; else the first piece of "unknown", which other words may begin with too.
    """
    spellings = list(dict.fromkeys(_spellings(lm)))
    whole = [ids for ids in spellings if len(ids) == 1]
    plain = [ids for ids in spellings if lm.tokenizer.decode(ids).strip() == UNKNOWN] or [tuple(lm.encode(UNKNOWN))]
    return UnknownTokens(tuple(sorted({ids[0] for ids in whole or plain})), min(plain, key=len))


def _spellings(lm: LanguageModel) -> Iterator[tuple[int, ...]]:
    for decoding in ("short", "plain"):
        prompt = render(lm, (), "What?", decoding)
        before = lm.encode(prompt)
        for text in (UNKNOWN, f" {UNKNOWN}", UNKNOWN.capitalize(), f" {UNKNOWN.capitalize()}"):
            ids = lm.encode(prompt + text)
            behind = ids[len(before) :] if ids[: len(before)] == before else lm.encode(text)
            if lm.tokenizer.decode(behind[:1]).strip():  # a token that is a space begins any answer
                yield tuple(behind)


def unknown_margins(lm: LanguageModel, logprobs: Tensor) -> Tensor:
    """How much likelier an answer begins with "unknown" than with anything else, [B], in nats: the log-probability of the likeliest token
    that begins it, less the penalty of the model's spec, minus that of the likeliest other token. Above 0 the model says "unknown" where
    it has the choice; below, another answer. `logprobs` [B, V] as in `first_tokens`."""
    first = list((lm.unknown or unknown_tokens(lm)).first)
    others = logprobs.clone()
    others[:, first] = -math.inf
    return logprobs[:, first].amax(-1) - lm.spec.abstention_penalty - others.amax(-1)


def first_tokens(
    lm: LanguageModel, logprobs: Tensor, penalties: Sequence[float | None] | None = None
) -> tuple[Tensor, list[tuple[int, ...]]]:
    """The first token of each answer, the likeliest once "unknown" is held back, and the whole answers of the rows that need no more.

    Args:
        logprobs: what the model says of the first token [B, V], in nats; it is left as it is.
        penalties: for each row the nats that are subtracted from the tokens that begin "unknown"; None: those of the model's spec.
            NEVER: another token is chosen; ALWAYS: the answer is "unknown" and nothing else.

    Returns:
        The tokens [B] int64, and for each row the tokens of its answer where it is decided, else none.
    """
    usual = lm.spec.abstention_penalty
    nats = [usual if penalty is None else penalty for penalty in penalties or [None] * len(logprobs)]
    if not any(nats):
        return logprobs.argmax(-1), [()] * len(nats)
    unknown = lm.unknown or unknown_tokens(lm)
    held_back = logprobs.clone()
    held_back[:, list(unknown.first)] -= torch.tensor(nats, device=logprobs.device, dtype=logprobs.dtype)[:, None]
    decided = [unknown.word if one == ALWAYS else () for one in nats]
    token = held_back.argmax(-1)
    for row, answer in enumerate(decided):
        if answer:
            token[row] = answer[0]
    return token, decided

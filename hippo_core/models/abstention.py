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
    """The tokens that begin "unknown" behind the model's own prompts; where none is a whole word, the first piece of each spelling."""
    spellings = list(dict.fromkeys(_spellings(lm)))
    single = [ids for ids in spellings if len(ids) == 1]
    plain = [ids for ids in spellings if lm.tokenizer.decode(ids).strip() == UNKNOWN] or [tuple(lm.encode(UNKNOWN))]
    return UnknownTokens(tuple(sorted({ids[0] for ids in single or plain})), min(plain, key=len))


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
    """How much likelier an answer begins with "unknown" than with anything else, [B], in nats, less the penalty of the model's spec.
    `logprobs` [B, V] are as in `first_tokens`; above 0 the model says "unknown"."""
    first = list((lm.unknown or unknown_tokens(lm)).first)
    others = logprobs.clone()
    others[:, first] = -math.inf
    return logprobs[:, first].amax(-1) - lm.spec.abstention_penalty - others.amax(-1)


def first_tokens(
    lm: LanguageModel, logprobs: Tensor, penalties: Sequence[float | None] | None = None
) -> tuple[Tensor, list[tuple[int, ...]]]:
    """The first token of each answer once "unknown" is held back, and the whole answers of the rows that need no more.

    Args:
        logprobs: what the model says of the first token [B, V], in nats.
        penalties: of each row the nats subtracted from what begins "unknown" (None: the spec's); NEVER forbids it, ALWAYS decides it.

    Returns:
        The tokens [B] int64, and for each row the tokens of its answer where it is decided, else none.
    """
    default = lm.spec.abstention_penalty
    nats = [default if penalty is None else penalty for penalty in penalties or [None] * len(logprobs)]
    if not any(nats):
        return logprobs.argmax(-1), [()] * len(nats)
    unknown = lm.unknown or unknown_tokens(lm)
    penalised = logprobs.clone()
    penalised[:, list(unknown.first)] -= torch.tensor(nats, device=logprobs.device, dtype=logprobs.dtype)[:, None]
    decided = [unknown.word if penalty == ALWAYS else () for penalty in nats]
    token = penalised.argmax(-1)
    for row, answer in enumerate(decided):
        if answer:
            token[row] = answer[0]
    return token, decided

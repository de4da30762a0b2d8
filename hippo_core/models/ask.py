"""Answer questions greedily, in batches, after keys and values that are already computed."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from hippo_core.errors import LabError
from hippo_core.models.generate import BatchState, Generation, answer_batch
from hippo_core.models.kv import KV, StoredKV, tokens_of
from hippo_core.models.language_model import LanguageModel

NOTHING = range(0)


@dataclass(frozen=True)
class Ask:
    """A question after cached keys and values."""

    tail: list[int]  # the token ids to run
    before: tuple[StoredKV, ...]  # the KV that stand before them
    start: int  # the position of the first token of `tail`
    hidden: range = NOTHING  # tokens, counted from the first of `before`, that no token attends to
    penalty: float | None = None  # how far "unknown" is held back; see `first_tokens` in models/abstention.py

    @property
    def length(self) -> int:
        """The number of tokens in cache and tail together."""
        return sum(map(tokens_of, self.before)) + len(self.tail)

    @property
    def seen(self) -> int:
        """The number of these tokens that the answer can attend to."""
        return self.length - len(self.hidden)


def ask(
    lm: LanguageModel,
    asks: Sequence[Ask],
    max_new_tokens: int,
    stop: Sequence[str] = (),
    batch_size: int = 32,
    batch_context: Callable[[list[int]], AbstractContextManager[BatchState | None]] = lambda batch: nullcontext(),
) -> list[Generation]:
    """Answer each ask by greedy decoding; one `Generation` an ask, in order. `prompt_tokens` counts the tokens seen.

    `batch_context(batch)` is entered around the run of a batch of asks, given by their numbers; the state that it yields is kept in step
    with the rows. LabError for an empty tail, and where the model's sliding window is too short.
    """
    if not all(ask.tail for ask in asks):
        raise LabError("an empty tail: a question must end with a token for the model to go on from")
    _check_window(lm, max((ask.length for ask in asks), default=0) + max_new_tokens)
    order = sorted(range(len(asks)), key=lambda number: (-asks[number].length + len(asks[number].tail), -len(asks[number].tail), number))
    answers: dict[int, Generation] = {}
    for first in range(0, len(order), batch_size):
        batch = order[first : first + batch_size]
        begin = time.perf_counter()
        with batch_context(batch) as batch_state:
            run = [asks[number] for number in batch]
            tails, before, starts = [ask.tail for ask in run], [ask.before for ask in run], [ask.start for ask in run]
            hidden, penalties = [ask.hidden for ask in run], [ask.penalty for ask in run]
            made = answer_batch(lm, tails, before, max_new_tokens, stop, starts, hidden, penalties, batch_state)
        latency = (time.perf_counter() - begin) * 1000 / len(batch)
        for number, answer in zip(batch, made, strict=True):
            seen, computed = asks[number].seen, len(asks[number].tail)
            answers[number] = replace(answer, prompt_tokens=seen, computed_tokens=computed, latency_ms=latency)
    return [answers[number] for number in range(len(asks))]


def _check_window(lm: LanguageModel, tokens: int) -> None:
    """LabError if the tokens do not fit the model's sliding window, which counts positions in the cache."""
    window = getattr(lm.config, "sliding_window", None)
    if window and tokens > window:
        raise LabError(f"model {lm.spec.name} sees the last {window} tokens only; prefix, blocks and answer take {tokens}: use fewer")


def ask_blocks(
    lm: LanguageModel,
    prefix: KV,
    chosen: Sequence[Sequence[StoredKV]],
    tails: Sequence[list[int]],
    max_new_tokens: int,
    stop: Sequence[str] = (),
    batch_size: int = 32,
    masked: bool = False,
    penalties: Sequence[float | None] | None = None,
) -> list[Generation]:
    """The greedy answer to each tail of token ids behind the prefix and the blocks `chosen` for it, in the tails' order.

    A tail starts behind the longest of its blocks, so that the order of blocks means nothing. `masked`: the blocks lie in the cache, but no
    token looks at them, and the tail starts behind the prefix. `penalties`: see `first_tokens`.
    """
    begin = tokens_of(prefix)
    before = [(prefix, *blocks) for blocks in chosen]
    starts = [begin + (0 if masked else max(map(tokens_of, blocks), default=0)) for blocks in chosen]
    unseen = [range(begin, begin + (sum(map(tokens_of, blocks)) if masked else 0)) for blocks in chosen]
    return ask(lm, list(map(Ask, tails, before, starts, unseen, penalties or [None] * len(tails))), max_new_tokens, stop, batch_size)

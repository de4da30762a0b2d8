"""Facts as blocks: each is run by itself after a common beginning, kept as keys and values, and put before any question."""

from collections.abc import Sequence
from dataclasses import dataclass

from hippo_core.errors import LabError
from hippo_core.models.ask import Ask, ask
from hippo_core.models.generate import Generation
from hippo_core.models.kv import KV, HeldKV, encode, keeps_kv_only, tokens_of
from hippo_core.models.language_model import LanguageModel


@dataclass(frozen=True)
class Blocks:
    """The KV (see models/kv.py) of a prefix, and of blocks that were each run alone after it, all from the same position on."""

    prefix: KV
    blocks: tuple[KV, ...]

    @property
    def mb(self) -> float:
        """MiB that they take."""
        return sum(kv.nbytes for kv in (self.prefix, *self.blocks)) / 2**20


def encode_blocks(
    lm: LanguageModel, prefix: list[int], blocks: Sequence[list[int]], batch_size: int = 32, before: KV | None = None
) -> Blocks:
    """Run `prefix` once (not where `before` is its KV already) and each of `blocks` after it: rows of token ids, as `split` of
    models/prompt.py makes them.

    A block sees the prefix and itself, and starts at position len(prefix), whatever other blocks there are. LabError for a model
    that keeps more of a text than keys and values.
    """
    if not keeps_kv_only(lm):
        raise LabError(f"model {lm.spec.name} does not keep texts as keys and values alone: facts cannot be blocks; give them as text")
    if before is None:
        [before] = encode(lm, [prefix])
    encoded: dict[int, KV] = {}
    order = sorted(range(len(blocks)), key=lambda block: len(blocks[block]))
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        encoded.update(zip(batch, encode(lm, [blocks[block] for block in batch], before), strict=True))
    return Blocks(before, tuple(encoded[block] for block in range(len(blocks))))


def ask_blocks(
    lm: LanguageModel,
    prefix: KV,
    chosen: Sequence[Sequence[HeldKV]],
    tails: Sequence[list[int]],
    max_new_tokens: int,
    stop: Sequence[str] = (),
    batch_size: int = 32,
    masked: bool = False,
    penalties: Sequence[float | None] | None = None,
) -> list[Generation]:
    """The greedy answer to each tail of token ids behind the prefix and the blocks `chosen` for it; answers in the tails' order.

    A tail sees the prefix and all its blocks and starts behind the longest of them: with one block this is the plain prompt, with
    none the prompt without facts. The blocks' order means nothing. `prompt_tokens` counts what the answer could see, and
    `computed_tokens` the tail, the only thing that is run here. `masked`: the blocks lie in the cache all the same, but no token
    looks at them, and the tail starts right behind the prefix. `penalties`: how far
    "unknown" is held back in each answer (see `first_tokens`).
    """
    begin = tokens_of(prefix)
    before = [(prefix, *blocks) for blocks in chosen]
    starts = [begin + (0 if masked else max(map(tokens_of, blocks), default=0)) for blocks in chosen]
    unseen = [range(begin, begin + (sum(map(tokens_of, blocks)) if masked else 0)) for blocks in chosen]
    return ask(lm, list(map(Ask, tails, before, starts, unseen, penalties or [None] * len(tails))), max_new_tokens, stop, batch_size)

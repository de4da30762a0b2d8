"""Error-correcting codes (hamming.py): 8 check bits for each 64 of the cache as it is stored, an eighth more memory; `Equal` keeps 4 for
each 4, as many bytes as the cache has: what a copy of it takes.

It mends one flipped bit of a word; numbers of a word of which it knows two or more to be flipped become zero. Its check bits lie in memory
like the cache's own and flip as often. Of a fault that is no flipped bit it knows what it notices. Codes of int8 and int4 are no words of a
cache that the model reads here: it takes float formats.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from hippo_core.errors import LabError
from hippo_core.models.kv import KV
from hippo_core.protocols.cache.bits import FLOATS, bits_of, draw, of_bits
from hippo_core.protocols.cache.corruption import generator_of
from hippo_core.protocols.cache.defences.base import Defence, DefenceContext, DefenceInput
from hippo_core.protocols.cache.hamming import byte_checks, checks, mend, mend_bytes


class ECC(Defence):
    name = "ecc"
    word = torch.int64
    checks: Callable[[Tensor], Tensor] = staticmethod(checks)
    mend: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = staticmethod(mend)

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        if setting.stored not in FLOATS:
            raise LabError(f"ecc guards a cache of {', '.join(FLOATS)}, got stored={setting.stored}; leave ecc out")
        self._kept: dict[str, Tensor] = {}

    def write(self, kv: KV, address: str, tokens: Sequence[int]) -> int:
        self._kept[address] = self.checks(self._words(kv))
        return self._kept[address].nbytes

    def repair(self, damaged: DefenceInput) -> KV:
        kv, stored = damaged.kv, self.setting.stored
        before, kept = self._words(kv), self._kept[damaged.address]
        generator = generator_of("check bits", self.setting.seed, damaged.address)
        words, lost = self.mend(before, kept ^ draw(kept, damaged.flipped, range(8), generator).to(torch.uint8))
        values = of_bits(words.view(FLOATS[stored][1]), stored)[: kv.numel()].view(kv.shape).to(kv)
        cleared = self._numbers(lost, kv)
        return torch.where(cleared, 0.0, torch.where(self._numbers(words != before, kv), values, kv))

    def _words(self, kv: KV) -> Tensor:
        """The bits of a cache as it is stored, in words [N]; zeros fill the last."""
        flat = bits_of(kv.float().cpu().flatten(), self.setting.stored)
        return pad(flat, (0, -len(flat) % (64 // self._width))).view(self.word)

    def _numbers(self, of_words: Tensor, kv: KV) -> Tensor:
        """What is true of words, bool [N], of the numbers of the cache that lie in them, or that they lie in."""
        bits = torch.iinfo(self.word).bits
        wide = of_words.repeat_interleave(bits // self._width) if bits >= self._width else of_words.view(-1, self._width // bits).any(1)
        return wide[: kv.numel()].view(kv.shape).to(kv.device)

    @property
    def _width(self) -> int:
        """Bits of a stored number."""
        return torch.finfo(FLOATS[self.setting.stored][0]).bits


class Equal(ECC):
    name = "ecc_equal"
    word = torch.uint8
    checks = staticmethod(byte_checks)
    mend = staticmethod(mend_bytes)

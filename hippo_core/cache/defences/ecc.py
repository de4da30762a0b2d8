"""An error-correcting code: 8 check bits for each 64 of the cache as it is stored (hamming.py), an eighth more memory.

It mends one flipped bit of a word; a word of which it knows two or more to be flipped becomes zero. Its check bits lie in memory like
the cache's own and flip as often. Of a fault that is no flipped bit it knows what it notices. Codes of int8 and int4 are no words of a
cache that the model reads here: it takes float formats.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from hippo_core.cache.bits import FLOATS, bits_of, draw, of_bits
from hippo_core.cache.corruption import generator_of
from hippo_core.cache.defences.base import Damaged, Defence, Setting
from hippo_core.cache.hamming import checks, mend
from hippo_core.cache.names import Format
from hippo_core.files import LabError
from hippo_core.models.kv import KV


class ECC(Defence):
    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.stored not in FLOATS:
            raise LabError(f"ecc guards a cache of {', '.join(FLOATS)}, got stored={setting.stored}; leave ecc out")
        self._kept: dict[str, Tensor] = {}

    def write(self, kv: KV, address: str, tokens: Sequence[int]) -> int:
        self._kept[address] = checks(_words(kv, self.setting.stored))
        return self._kept[address].nbytes

    def repair(self, damaged: Damaged) -> KV:
        stored = self.setting.stored
        before = _words(damaged.kv, stored)
        kept = self._kept[damaged.address]
        generator = generator_of("check bits", self.setting.seed, damaged.address)
        kept = kept ^ draw(kept, damaged.flipped, range(8), generator).to(torch.uint8)
        words, lost = mend(before, kept)
        values = _values(torch.where(lost, 0, words), stored, damaged.kv)
        touched = ((words != before) | lost).repeat_interleave(64 // _width(stored))[: values.numel()].view(values.shape)
        return torch.where(touched, values, damaged.kv)


def _width(stored: Format) -> int:
    return torch.finfo(FLOATS[stored][0]).bits


def _words(kv: KV, stored: Format) -> Tensor:
    """The bits of a cache, 64 a word: int64 [N]."""
    flat = bits_of(kv.float().cpu().flatten(), stored)
    return pad(flat, (0, -len(flat) % (64 // _width(stored)))).view(torch.int64)


def _values(words: Tensor, stored: Format, like: KV) -> KV:
    """Words as the cache that they hold."""
    return of_bits(words.view(FLOATS[stored][1]), stored)[: like.numel()].view(like.shape).to(like)

"""Error-correcting codes: extended Hamming codes (Hamming 1950; Hsiao 1970), whose check bits lie in memory like the cache's own and flip
as often. Numbers of a word of which more bits are known to be flipped than the code mends become zero. Of a fault that is no flipped bit
they know what they notice. Codes of int8 and int4 are no words of a cache that the model reads here: they take float formats.

`ECC` guards words of 64 bits, int64, by 8 check bits, uint8: an eighth more memory. They mend one flipped bit of the 72 and notice two.
Data bit j has the column h(j), the j-th number that is no power of two; check bit i is the parity of the data bits whose column has bit i,
the eighth the parity of all 71. A flipped bit changes the parity and leaves its own column as the syndrome; two leave the parity as it was.

`Equal` is the same over four bits with four check bits, as tables: it keeps as many bytes as the cache has, what a copy of it takes.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.bits import FLOATS, bits_of, draw, of_bits
from hippo_core.protocols.cache.corruption import generator_of
from hippo_core.protocols.cache.defences.base import Defence, DefenceContext, DefenceInput

DATA, CHECKS = 64, 7  # bits, and those of a syndrome
COLUMNS = [number for number in range(3, 128) if number & (number - 1)][:DATA]


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


MASKS = [_signed(sum(1 << bit for bit, column in enumerate(COLUMNS) if column >> check & 1)) for check in range(CHECKS)]
POSITIONS = torch.full((128,), -1, dtype=torch.long)  # of the flipped bit, by its column; DATA: a check bit itself, nothing to correct
POSITIONS[COLUMNS] = torch.arange(DATA)
POSITIONS[[0, *(1 << check for check in range(CHECKS))]] = DATA


def parity(words: Tensor) -> Tensor:
    """The parity of the 64 bits of each word, 0 or 1."""
    for shift in (32, 16, 8, 4, 2, 1):
        words = words ^ (words >> shift)
    return words & 1


def checks(words: Tensor) -> Tensor:
    """The check bits of words int64 [N]: uint8 [N]."""
    code = torch.zeros_like(words)
    for check, mask in enumerate(MASKS):
        code |= parity(words & mask) << check
    return (code | (parity(words) ^ parity(code)) << CHECKS).to(torch.uint8)


def correct(words: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Words [N] as their check bits [N] say that they were, and which are known to be lost, bool [N]: more than one bit of them flipped.
    Three flipped bits look like one, and the correction is wrong."""
    kept = kept.long()
    wrong = checks(words).long() ^ kept
    syndrome = wrong & 127
    odd = parity(words) ^ parity(kept)  # of all 72 bits
    at = POSITIONS[syndrome]
    ones = torch.ones_like(words)
    corrected = torch.where((odd == 1) & (at >= 0) & (at < DATA), words ^ (ones << at.clamp(0, DATA - 1)), words)
    lost = ((odd == 0) & (syndrome != 0)) | ((odd == 1) & (at < 0))
    return corrected, lost


def _nibble_check(data: int) -> int:
    """The check bits of four data bits: three of Hamming's (7, 4), and the parity of all seven."""
    one, two, three, four = (data >> bit & 1 for bit in range(4))
    code = (one ^ two ^ four) | (one ^ three ^ four) << 1 | (two ^ three ^ four) << 2
    return code | ((data ^ code).bit_count() & 1) << 3


def _nearest(word: int) -> int:
    """The data of the code word at most one bit from these eight (data, then check bits); 16 where there is none."""
    apart = {data: (word ^ (data | _nibble_check(data) << 4)).bit_count() for data in range(16)}
    return next((data for data, bits in apart.items() if bits < 2), 16)


NIBBLE_CHECKS = torch.tensor([_nibble_check(data) for data in range(16)], dtype=torch.uint8)
NIBBLES = torch.tensor([_nearest(word) for word in range(256)], dtype=torch.uint8)


def byte_checks(data: Tensor) -> Tensor:
    """The check bits of bytes uint8 [N], four for either half: uint8 [N]."""
    return NIBBLE_CHECKS[(data & 15).long()] | NIBBLE_CHECKS[(data >> 4).long()] << 4


def correct_bytes(data: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Bytes [N] as their check bits [N] say that they were, and which are known to be lost, bool [N]: two bits of a half flipped."""
    low = NIBBLES[((data & 15) | (kept & 15) << 4).long()]
    high = NIBBLES[((data >> 4) | (kept >> 4) << 4).long()]
    return (low & 15) | (high & 15) << 4, (low > 15) | (high > 15)


class ECC(Defence):
    name = "ecc"
    word = torch.int64
    checks: Callable[[Tensor], Tensor] = staticmethod(checks)
    correct: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = staticmethod(correct)

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        self._kept: dict[str, Tensor] = {}

    def write(self, kv: KV, address: str, tokens: Sequence[int]) -> int:
        self._kept[address] = self.checks(self._words(kv))
        return self._kept[address].nbytes

    def repair(self, damaged: DefenceInput) -> KV:
        kv, stored = damaged.kv, self.setting.stored
        before, kept = self._words(kv), self._kept[damaged.address]
        generator = generator_of("check bits", self.setting.seed, damaged.address)
        words, lost = self.correct(before, kept ^ draw(kept, damaged.flipped, range(8), generator).to(torch.uint8))
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
    correct = staticmethod(correct_bytes)

"""An extended Hamming code over words of 64 bits: 8 check bits mend one flipped bit of the 72 and notice two (Hamming 1950; Hsiao 1970).

Data bit j has the column h(j), the j-th number that is no power of two; check bit i is the parity of the data bits whose column has bit i,
the eighth the parity of all 71. A flipped bit changes the parity and leaves its own column as the syndrome; two leave the parity as it was.
A word is int64, its check bits uint8.

`NIBBLE_CHECKS` and `NIBBLES` are the same code over four bits with four check bits, as tables: it keeps as many bytes as it guards.
"""

import torch
from torch import Tensor

DATA, CHECKS = 64, 7  # bits, and those of a syndrome
COLUMNS = [number for number in range(3, 128) if number & (number - 1)][:DATA]


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


MASKS = [_signed(sum(1 << bit for bit, column in enumerate(COLUMNS) if column >> check & 1)) for check in range(CHECKS)]


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


def mend(words: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Words [N] as their check bits [N] say that they were, and which are known to be lost, bool [N]: more than one bit of them flipped.
    Three flipped bits look like one, and are mended into what never was."""
    kept = kept.long()
    wrong = checks(words).long() ^ kept
    syndrome = wrong & 127
    odd = parity(words) ^ parity(kept)  # of all 72 bits
    place = torch.full((128,), -1, dtype=torch.long)
    place[COLUMNS] = torch.arange(DATA)
    for check in range(CHECKS):
        place[1 << check] = DATA  # a check bit itself: nothing to mend
    place[0] = DATA
    at = place[syndrome]
    one = torch.ones_like(words)
    mended = torch.where((odd == 1) & (at >= 0) & (at < DATA), words ^ (one << at.clamp(0, DATA - 1)), words)
    lost = ((odd == 0) & (syndrome != 0)) | ((odd == 1) & (at < 0))
    return mended, lost


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


def mend_bytes(data: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Bytes [N] as their check bits [N] say that they were, and which are known to be lost, bool [N]: two bits of a half flipped."""
    low = NIBBLES[((data & 15) | (kept & 15) << 4).long()]
    high = NIBBLES[((data >> 4) | (kept >> 4) << 4).long()]
    return (low & 15) | (high & 15) << 4, (low > 15) | (high > 15)

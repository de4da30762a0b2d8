"""Codes over bytes, and single bits."""

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.protocols.cache.bits import positions
from hippo_core.protocols.cache.corruption import Corruption, corrupt
from hippo_core.protocols.cache.defences import load_defence
from hippo_core.protocols.cache.hamming import byte_checks, mend_bytes
from tests.protocols.cache.conftest import cache

BYTES = torch.arange(256, dtype=torch.uint8)


def test_any_one_flipped_bit_of_a_half_is_mended_and_two_are_known():
    kept = byte_checks(BYTES)
    for bit in range(8):
        for flipped in (mend_bytes(BYTES ^ (1 << bit), kept), mend_bytes(BYTES, kept ^ (1 << bit))):
            assert torch.equal(flipped[0], BYTES) and not flipped[1].any()
    assert mend_bytes(BYTES ^ 3, kept)[1].all() and mend_bytes(BYTES ^ 0x81, kept)[0].equal(BYTES)  # one in each half


@pytest.mark.parametrize(("name", "share"), [("ecc", 1 / 8), ("ecc_equal", 1)])
def test_a_code_mends_flips_and_costs_what_it_says(setting, damaged, name, share):
    defence = load_defence(name, setting)
    kv = cache(1).bfloat16().float()
    assert defence.write(kv, "a/0", range(40)) == kv.numel() * 2 * share
    hit = corrupt(kv, Corruption("bitflip", 0.6), 3, "a/0")
    assert hit.mask.any() and torch.equal(defence.repair(damaged(hit.kv)), kv)


def test_more_check_bits_mend_more(setting, damaged):
    kv = cache(1).bfloat16().float()
    hit = corrupt(kv, Corruption("bitflip", 1.0, layers=(0,)), 3, "a/0").kv
    for _ in range(3):  # some words with several flips
        hit = corrupt(hit, Corruption("bitflip", 1.0), 3 + _, "b/0").kv
    wrong = {}
    for name in ("ecc", "ecc_equal"):
        defence = load_defence(name, setting)
        defence.write(kv, "a/0", range(40))
        wrong[name] = int((defence.repair(damaged(hit, flipped=1e-3)) != kv).sum())
    assert wrong["ecc_equal"] < wrong["ecc"]


def test_one_bit_flips_alone():
    kv = cache(1).bfloat16().float()
    now = corrupt(kv, Corruption("bitflip", 1.0, bits=15), 3, "a/0").kv
    assert torch.equal(now.abs(), kv.abs()) and not torch.equal(now, kv)  # the sign of bfloat16
    assert len(positions("int4")) == 4 and list(positions("int4", 3)) == [3]
    with pytest.raises(LabError, match="int4 has 4 bits, numbered from 0 to 3; got bit 4"):
        Corruption("bitflip", 1.0, stored="int4", bits=4)

"""Defences: on a whole cache nothing is lost, only those that are told read the mask, and what is put back is what was stored."""

from dataclasses import replace

import pytest
import torch

from hippo_core.discovery import members
from hippo_core.errors import LabError
from hippo_core.models.kv import encode
from hippo_core.protocols.cache import defences
from hippo_core.protocols.cache.corruption import Corruption, corrupt
from hippo_core.protocols.cache.defences import load_defence
from hippo_core.protocols.cache.hamming import checks, mend
from tests.protocols.cache.conftest import SHAPE, cache

STRANGERS = [name for name in members(defences.__name__) if name not in ("learned", "recompute", "wiener", "wiener_layer")]
HARMLESS = ("none", "reset", "masking", "ecc", "episodic", "episodic_gold")


def written(setting, name, *caches):
    defence = load_defence(name, setting)
    for number, kv in enumerate(caches):
        defence.write(kv, f"{'abc'[number]}/0", range(5, 5 + kv.shape[3]))
    return defence


@pytest.mark.parametrize("name", HARMLESS)
def test_a_whole_cache_stays_as_it_is(setting, damaged, name):
    kv = cache(1)
    assert torch.equal(written(setting, name, kv, cache(2)).repair(damaged(kv)), kv)


@pytest.mark.parametrize("name", STRANGERS)
def test_only_a_defence_that_is_told_reads_where_the_damage_is(setting, damaged, name):
    defence = written(setting, name, cache(1), cache(2))
    kv = corrupt(cache(1), Corruption("gaussian", 0.5, times="window", window=(3, 20)), 7, "a/0")
    here = defence.repair(damaged(kv.kv, mask=kv.mask))
    elsewhere = defence.repair(damaged(kv.kv, mask=torch.zeros_like(kv.mask)))
    assert (
        here.shape == elsewhere.shape and torch.equal(here.nan_to_num(), elsewhere.nan_to_num())
    ) is not defence.uses_oracle_mask or name == "episodic_gold"


def test_reset_and_masking_do_what_they_say(setting, damaged):
    mask = torch.zeros(*SHAPE[:4], 1, dtype=torch.bool)
    mask[1, 0, 1, 4] = True
    reset = written(setting, "reset", cache(1)).repair(damaged(cache(1), mask=mask))
    assert not reset[1, 0, 1, 4].any() and torch.equal(reset[0], cache(1)[0])
    masked = written(setting, "masking", cache(1)).repair(damaged(cache(1), mask=mask))
    assert torch.equal(masked, torch.cat([cache(1)[:, :, :, :4], cache(1)[:, :, :, 5:]], 3))


@pytest.mark.parametrize("name", ["clipping", "detect_clear", "rms_outlier", "median"])
def test_what_no_clean_text_has_is_taken_out(setting, damaged, name):
    kv = cache(1)
    kv[0, 0, 0, 10] = 1e6
    kv[2, 1, 1, 3] = torch.nan
    repaired = written(setting, name, kv).repair(damaged(kv))
    assert repaired.isfinite().all() and repaired.abs().max() < 20


def test_a_hamming_code_mends_one_bit_and_notices_two():
    words = torch.randint(-(2**62), 2**62, (200,), generator=torch.Generator().manual_seed(0))
    kept, one = checks(words), torch.ones_like(words)
    for bit in range(64):
        mended, lost = mend(words ^ (one << bit), kept)
        assert torch.equal(mended, words) and not lost.any()
        _, lost = mend(words ^ (one << bit) ^ (one << (bit + 13) % 64), kept)
        assert lost.all()
    for check in range(8):
        mended, lost = mend(words, kept ^ (1 << check))
        assert torch.equal(mended, words) and not lost.any()


def test_ecc_mends_rare_flips_for_an_eighth_of_the_memory_and_not_other_faults(setting, damaged):
    kv = cache(1).bfloat16().float()
    defence = load_defence("ecc", setting)
    assert defence.write(kv, "a/0", ()) == kv.numel() * 2 / 8
    rare = corrupt(kv, Corruption("bitflip", 0.7), 7, "a/0")
    assert rare.mask.any() and torch.equal(defence.repair(damaged(rare.kv)), kv)


def test_check_bits_flip_as_the_cache_does(setting, damaged):
    """Where only they flip, two in a word cost the word."""
    kv = cache(1).bfloat16().float()
    defence = written(setting, "ecc", kv)
    assert torch.equal(defence.repair(damaged(kv)), kv)
    assert not torch.equal(defence.repair(damaged(kv, flipped=0.3)), kv)


def test_ecc_has_no_codes_of_whole_numbers(setting):
    with pytest.raises(LabError, match="leave ecc out"):
        load_defence("ecc", replace(setting, stored="int8"))


@pytest.mark.parametrize("kind", ["gaussian", "bitflip", "dropout_zero", "contiguous_overwrite"])
def test_the_store_finds_the_cache_by_what_is_left_of_it_and_puts_back_what_is_lost(setting, damaged, kind):
    caches = [cache(seed) for seed in (1, 2, 3)]
    defence = written(replace(setting, precision="model"), "episodic", *caches)
    broken = corrupt(caches[1], Corruption(kind, 0.5), 7, "b/0", cache(9)).kv
    for address in ("b/0", "a/0"):  # it reads no address
        assert torch.allclose(defence.repair(damaged(broken, address)), caches[1], atol=1e-6)


def test_what_is_put_back_is_what_was_stored(setting, damaged):
    """Told another thing under the same key, the repair follows the store."""
    defence = written(replace(setting, precision="model"), "episodic", cache(1), cache(2))
    other = cache(1) + 0.5
    defence.store.stored = lambda address, tokens: other
    broken = corrupt(cache(1), Corruption("gaussian", 0.2), 7, "a/0").kv
    assert torch.allclose(defence.repair(damaged(broken)), other, atol=1e-6)


def test_what_was_never_stored_is_not_repaired(setting, damaged):
    defence = written(setting, "episodic", cache(1), cache(2))
    broken = corrupt(cache(5), Corruption("gaussian", 0.3), 7, "e/0").kv
    assert torch.equal(defence.repair(damaged(broken)), broken)
    assert torch.equal(load_defence("episodic", setting).repair(damaged(broken)), broken)


def test_a_budget_puts_back_the_worst_spans_first(setting, damaged):
    defence = written(replace(setting, precision="model", budget=0.3), "episodic", cache(1), cache(2))
    broken = cache(1)
    broken[:, :, :, 16:32] += 5  # the second of three spans, whole
    broken[0, 0, 0, 3] += 5  # one vector of the first
    repaired = defence.repair(damaged(broken))
    assert torch.equal(repaired[:, :, :, :16], broken[:, :, :, :16])
    assert torch.allclose(repaired[:, :, :, 16:], cache(1)[:, :, :, 16:], atol=1e-6)


def test_the_same_text_is_the_ceiling(lm, setting, damaged):
    prefix = encode(lm, [[5, 6, 7]])[0]
    tokens = list(range(5, 25))
    kv = encode(lm, [tokens], prefix)[0]
    seen = replace(damaged(torch.zeros_like(kv), prefix=prefix), tokens=tuple(tokens))
    assert torch.equal(load_defence("recompute", setting).repair(seen), kv)


def test_a_part_of_the_text_brings_the_first_tokens_back(lm, setting, damaged):
    tokens = list(range(5, 25))
    kv = encode(lm, [tokens])[0]
    seen = replace(damaged(torch.zeros_like(kv)), prefix=None, tokens=tuple(tokens))
    part = load_defence("recompute", replace(setting, budget=0.3))
    assert part.reads and not load_defence("recompute", setting).reads
    repaired = part.repair(seen)
    assert torch.allclose(repaired[:, :, :, :6], kv[:, :, :, :6], atol=1e-5) and not repaired[:, :, :, 6:].any()


def test_an_unknown_defence_is_refused(setting):
    with pytest.raises(LabError, match="unknown defence 'prayer'"):
        load_defence("prayer", setting)


def test_learned_needs_a_training(setting):
    with pytest.raises(LabError, match="step=train"):
        load_defence("learned", setting)

"""Defences: a whole cache loses nothing, only those that are told read the mask, codes mend bits, and suspicion follows the damage."""

from dataclasses import replace

import pytest
import torch

from hippo_core.discovery import members
from hippo_core.models.kv import encode
from hippo_core.protocols.cache import defences
from hippo_core.protocols.cache.corruption import Corruption, corrupt
from hippo_core.protocols.cache.defences import load_defence
from hippo_core.protocols.cache.defences.ecc import byte_checks, checks, correct, correct_bytes
from hippo_core.protocols.cache.run import RATES, Detections, roc
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


def test_check_bits_flip_as_the_cache_does(setting, damaged):
    """Where only they flip, two in a word cost the word."""
    kv = cache(1).bfloat16().float()
    defence = written(setting, "ecc", kv)
    assert torch.equal(defence.repair(damaged(kv)), kv)
    assert not torch.equal(defence.repair(damaged(kv, flipped=0.3)), kv)


@pytest.mark.parametrize("kind", ["gaussian", "bitflip", "dropout_zero", "contiguous_overwrite"])
def test_the_store_finds_the_cache_by_what_is_left_of_it_and_puts_back_what_is_lost(setting, damaged, kind):
    caches = [cache(seed) for seed in (1, 2, 3)]
    defence = written(replace(setting, precision="model"), "episodic", *caches)
    broken = corrupt(caches[1], Corruption(kind, 0.5), 7, "b/0", cache(9)).kv
    for address in ("b/0", "a/0"):  # it reads no address
        assert torch.allclose(defence.repair(damaged(broken, address)), caches[1], atol=1e-6)


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


def test_a_part_of_the_text_brings_the_first_tokens_back(lm, setting, damaged):
    tokens = list(range(5, 25))
    kv = encode(lm, [tokens])[0]
    seen = replace(damaged(torch.zeros_like(kv)), prefix=None, tokens=tuple(tokens))
    part = load_defence("recompute", replace(setting, budget=0.3))
    assert part.reads and not load_defence("recompute", setting).reads
    repaired = part.repair(seen)
    assert torch.allclose(repaired[:, :, :, :6], kv[:, :, :, :6], atol=1e-5) and not repaired[:, :, :, 6:].any()


BYTES = torch.arange(256, dtype=torch.uint8)


def test_a_hamming_code_mends_one_bit_and_notices_two():
    words = torch.randint(-(2**62), 2**62, (200,), generator=torch.Generator().manual_seed(0))
    kept, ones = checks(words), torch.ones_like(words)
    for bit in range(64):
        corrected, lost = correct(words ^ (ones << bit), kept)
        assert torch.equal(corrected, words) and not lost.any()
        _, lost = correct(words ^ (ones << bit) ^ (ones << (bit + 13) % 64), kept)
        assert lost.all()
    for check in range(8):
        corrected, lost = correct(words, kept ^ (1 << check))
        assert torch.equal(corrected, words) and not lost.any()


def test_any_one_flipped_bit_of_a_half_is_mended_and_two_are_known():
    kept = byte_checks(BYTES)
    for bit in range(8):
        for flipped in (correct_bytes(BYTES ^ (1 << bit), kept), correct_bytes(BYTES, kept ^ (1 << bit))):
            assert torch.equal(flipped[0], BYTES) and not flipped[1].any()
    assert correct_bytes(BYTES ^ 3, kept)[1].all() and correct_bytes(BYTES ^ 0x81, kept)[0].equal(BYTES)  # one in each half


@pytest.mark.parametrize(("name", "share"), [("ecc", 1 / 8), ("ecc_equal", 1)])
def test_a_code_mends_flips_and_costs_what_it_says(setting, damaged, name, share):
    defence = load_defence(name, setting)
    kv = cache(1).bfloat16().float()
    assert defence.write(kv, "a/0", range(40)) == kv.numel() * 2 * share
    hit = corrupt(kv, Corruption("bitflip", 0.6), 3, "a/0")
    assert hit.mask.any() and torch.equal(defence.repair(damaged(hit.kv)), kv)


def test_one_bit_flips_alone():
    kv = cache(1).bfloat16().float()
    now = corrupt(kv, Corruption("bitflip", 1.0, bits=15), 3, "a/0").kv
    assert torch.equal(now.abs(), kv.abs()) and not torch.equal(now, kv)  # the sign of bfloat16


def test_recall_counts_what_lies_above_as_many_clean_scores_as_false_alarms_allow():
    clean = torch.arange(1000).float()
    curve = roc(torch.tensor([989.0, 989.5, 990.0, 2000.0]), clean)
    assert curve["recall_at_1_percent"] == 0.75  # above 989: ten clean scores are
    assert roc(clean, clean)["auc"] == pytest.approx(0.5) and roc(clean + 2000, clean)["auc"] == 1


def test_equal_scores_are_no_finding():
    curve = roc(torch.zeros(5), torch.zeros(100))
    assert curve["recall"] == [0.0] * len(RATES) and curve["auc"] == 0.5


@pytest.mark.parametrize("name", ["detect_clear", "rms_outlier", "clipping", "episodic"])
def test_large_noise_is_noticed_and_the_curve_follows_the_mask(setting, damaged, name):
    defence = load_defence(name, setting)
    kv = cache(1)
    defence.write(kv, "a/0", range(5, 45))
    detections = Detections()
    labels = {"task": "text", "kind": "gaussian", "defence": name}
    for severity in (0.0, 1.0):
        hit = corrupt(kv, Corruption("gaussian", severity, times="window", window=(3, 20)), 7, "a/0")
        given = damaged(hit.kv, mask=hit.mask)
        detections.see({**labels, "severity": severity}, [hit], [defence.suspicion(given, defence.repair(given))])
    [line] = detections.plain()["lines"]
    assert line["recall_at_1_percent"] > 0.5 and line["auc"] > 0.9
    assert line["damaged"] == hit.mask.sum() and line["clean"] == hit.mask.numel()

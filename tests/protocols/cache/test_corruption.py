"""Faults: each does more with more severity, strikes only where it may, and is the same for whoever asks; presses and bits."""

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.protocols.cache import bits
from hippo_core.protocols.cache.corruption import KINDS, Corruption, corrupt, faults
from hippo_core.protocols.cache.parameters import CacheParameters
from hippo_core.protocols.cache.removal import PRESSES, REMOVALS, entropy, press, removed
from tests.protocols.cache.conftest import SHAPE, cache

each = pytest.mark.parametrize("kind", KINDS)
DONOR = cache(9)


def broken(kind, severity, name="a/0", **more):
    return corrupt(cache(1), Corruption(kind, severity, **more), 7, name, DONOR)


@each
def test_no_severity_changes_nothing(kind):
    damage = broken(kind, 0.0)
    assert torch.equal(damage.kv, cache(1)) and not damage.mask.any()


@each
def test_more_severity_is_more_damage_to_no_fewer_vectors(kind):
    levels = [broken(kind, severity) for severity in (0.7, 0.85, 1.0)]
    away = [(damage.kv.nan_to_num(1e4, 1e4, 1e4).clamp(-1e4, 1e4) - cache(1)).abs().sum() for damage in levels]
    assert 0 < away[0] < away[2]
    assert levels[0].mask.sum() <= levels[1].mask.sum() <= levels[2].mask.sum()


@each
def test_the_same_fault_strikes_alike_and_another_cache_otherwise(kind):
    first = broken(kind, 0.7).kv
    assert torch.equal(first.nan_to_num(), broken(kind, 0.7).kv.nan_to_num())
    if kind not in ("quant_noise", "contiguous_overwrite", "orthogonal_rotation"):
        assert not torch.equal(first.nan_to_num(), broken(kind, 0.7, name="b/0").kv.nan_to_num())


@each
@pytest.mark.parametrize(
    ("axes", "hit"),
    [
        ({"layers": (1,)}, (slice(1, 2), slice(None), slice(None), slice(None))),
        ({"heads": (0,)}, (slice(None), slice(None), slice(0, 1), slice(None))),
        ({"parts": "V"}, (slice(None), slice(1, 2), slice(None), slice(None))),
        ({"times": "old_only", "recent": 30}, (slice(None), slice(None), slice(None), slice(0, 10))),
        ({"times": "window", "window": (5, 9)}, (slice(None), slice(None), slice(None), slice(5, 9))),
    ],
)
def test_it_strikes_only_where_it_may(kind, axes, hit):
    damage = broken(kind, 1.0, **{"layers": (0, 1, 2), **axes})
    may = torch.zeros(*SHAPE[:4], 1, dtype=torch.bool)
    may[hit] = True
    assert damage.mask.any() and not (damage.mask & ~may).any()
    assert torch.equal(torch.where(damage.mask, 0.0, damage.kv), torch.where(damage.mask, 0.0, cache(1)))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"layers": (3,)}, "layers .3. are none of this model's 3"),
        ({"heads": (2,)}, "heads .2. are none"),
        ({"times": "window", "window": (30, 41)}, "ends behind the 40 tokens"),
    ],
)
def test_what_the_cache_lacks_is_refused(axes, message):
    with pytest.raises(LabError, match=message):
        broken("gaussian", 0.5, **axes)


def test_a_sparse_flip_changes_signs_or_jumps_up_or_down_alike():
    x = torch.cat([cache(1), torch.zeros_like(cache(1))], 3).repeat(1, 1, 1, 10, 1)
    away = corrupt(x, Corruption("bitflipish_sparse", 1.0), 7, "a/0").kv - x
    jump = 8 * x.abs().clamp(min=1e-3)
    turned, up, down = ((away - other).abs() < 1e-3 * jump for other in (-2 * x, jump, -jump))
    turned = turned & (x != 0)
    assert (turned | up | down | (away == 0)).all()
    hit = x != 0  # of what is 0 a change of sign shows nothing
    for kind, share in ((turned, 0.05), (up, 0.025), (down, 0.025)):
        assert abs(kind[hit].float().mean() - share) < 0.005


def test_a_whole_overwrite_is_the_other_text():
    assert torch.equal(broken("contiguous_overwrite", 1.0).kv, DONOR)


def test_a_rotation_keeps_lengths_and_at_1_is_orthogonal():
    turned = broken("orthogonal_rotation", 1.0).kv
    assert torch.allclose(turned.norm(dim=-1), cache(1).norm(dim=-1), rtol=1e-4)
    assert (turned * cache(1)).sum(-1).abs().max() < 1e-3


@pytest.mark.parametrize(
    ("stored", "bit", "x", "expected"),
    [
        ("float32", 31, 1.5, -1.5),
        ("float32", 22, 1.0, 1.5),
        ("float16", 9, 1.0, 1.5),
        ("bfloat16", 7, 1.0, 0.5),
        ("bfloat16", 14, 1.0, float("inf")),
    ],
)
def test_a_bit_is_the_bit_that_it_is(stored, bit, x, expected):
    flips = torch.tensor([[1 << bit if bit < 31 else -(1 << 31)]], dtype=torch.int32)
    assert bits.flip(torch.tensor([[x]]), flips, stored).item() == expected


@pytest.mark.parametrize("stored", bits.FLOATS)
def test_a_bit_flipped_twice_is_as_it_was_and_what_is_no_number_keeps_its_bits(stored):
    x = bits.of_bits(bits.bits_of(torch.linspace(-2, 2, 64), stored), stored)
    for bit in bits.positions(stored):
        flips = torch.full((64,), 1 << bit if bit < 31 else -(1 << 31), dtype=torch.int32)
        assert torch.equal(bits.flip(bits.flip(x, flips, stored), flips, stored), x)


@pytest.mark.parametrize("stored", bits.CODES)
def test_codes_flip_on_their_grid(stored):
    most = 2 ** (bits.CODES[stored] - 1) - 1
    x = torch.tensor([[1.0, -1.0, 0.0, 0.5]])
    sign = torch.full((1, 4), most + 1, dtype=torch.int32)
    flipped = bits.flip(x, sign, stored) * most
    assert flipped[0, 0].round() == most - (most + 1) and flipped[0, 2].round() == -(most + 1)


def test_the_first_and_the_latest_tokens_stay():
    kv = cache(1)
    assert torch.equal(press("streaming_llm", kv, 0.5), torch.cat([kv[:, :, :, :4], kv[:, :, :, 24:]], 3))


def test_of_each_head_the_tokens_with_short_keys_stay_in_their_order():
    kv = cache(1)
    kv[:, 0, 0, 7] *= 100  # of head 0 token 7
    kv[:, 0, 1, 9] *= 100  # of head 1 token 9
    kept = press("knorm", kv, 1 / 40)
    for head, token in enumerate((7, 9)):
        rest = [other for other in range(40) if other != token]
        assert torch.equal(kept[:, :, head], kv[:, :, head, rest])


@pytest.mark.parametrize("name", PRESSES)
def test_a_press_that_drops_nothing_changes_nothing_and_one_token_always_stays(name):
    assert torch.equal(press(name, cache(1), 0.0), cache(1))
    assert press(name, cache(1), 1.0).shape[3] == 1


def test_bits_are_gone_as_information_theory_counts_them():
    assert entropy(0.5) == 1 and removed("dropout_zero", 0.3) == 0.3
    assert removed("bitflip", 1.0) == pytest.approx(0.01141, abs=1e-5)  # H(.001)
    assert removed("quant_noise", 1.0) == pytest.approx(1 - 1.58496 / 16, abs=1e-5)  # ternary
    assert removed("gaussian", 0.5) == pytest.approx(1 - 0.5 / 16)  # noise as large as the vector
    for removal in REMOVALS:
        along = [removed(removal, severity / 10) for severity in range(11)]
        assert along == sorted(along) and along[0] == 0 and along[-1] <= 1


def test_layers_and_heads_are_drawn_for_each_cache_and_for_every_fault_alike():
    shape = (40, 2, 30, 1, 1)
    [(_, fault)] = faults(CacheParameters(kinds=["gaussian"], severities=[0.5], layer_share=0.5, head_share=0.25, mask_seed=3))
    drawn = fault.random_mask(shape, 7, "a/0")
    assert drawn.flatten(1).any(1).float().mean() == pytest.approx(0.5, abs=0.2)
    assert drawn[drawn.flatten(1).any(1)].float().mean() == pytest.approx(0.25, abs=0.05)
    assert torch.equal(drawn, fault.random_mask(shape, 8, "a/0")) and not torch.equal(drawn, fault.random_mask(shape, 7, "b/0"))
    hit = [broken(kind, 0.7, head_share=0.5).mask.any(-2) for kind in ("gaussian", "bitflipish_sparse")]
    assert torch.equal(*hit) and 0 < hit[0].sum() < hit[0].numel()
    assert broken("gaussian", 0.7).mask.all()

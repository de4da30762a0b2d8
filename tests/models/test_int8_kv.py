"""Rounded to 8 bits, keys and values are off by half a step of their grid at most; keys share it by channel, values by token."""

import pytest
import torch

from hippo_core.models.int8_kv import Int8KV

STEP = 0.5 + 127 / 2048  # half a step, and what the last code is short of where the scale itself was rounded down


def drawn(tokens: int = 20, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A KV with one channel of keys, and one token of values, a hundred times as large as the others."""
    kv = torch.randn(3, 2, 2, tokens, 8, generator=torch.Generator().manual_seed(3))
    kv[:, 0, :, :, 5] = 100 * kv[:, 0, :, :, 5] + 300
    kv[:, 1, :, -1:] *= 100
    return kv.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tokens", [1, 2, 20])
def test_off_by_half_a_step_at_most(tokens, dtype):
    kv = drawn(tokens, dtype)
    stored = Int8KV.of(kv)
    error = (stored.kv(torch.float32) - kv.float()).abs()
    assert (error[:, 0] <= STEP * stored.key_scale.float() + 1e-6 * kv[:, 0].float().abs()).all()
    assert (error[:, 1] <= STEP * stored.value_scale.float() + 1e-6 * kv[:, 1].float().abs()).all()
    assert stored.kv(dtype).dtype == dtype and stored.shape == kv.shape


def test_an_outlier_costs_only_its_own_channel_of_keys_and_its_own_token_of_values():
    kv = drawn()
    error = (Int8KV.of(kv).kv(torch.float32) - kv).abs()
    quiet = [channel for channel in range(8) if channel != 5]
    assert error[:, 0][..., quiet].max() < 0.02 and error[:, 1, :, :-1].max() < 0.02  # values about 3 in size
    assert error[:, 0][..., 5].max() > 0.2 and error[:, 1, :, -1:].max() > 0.2


@pytest.mark.parametrize("value", [0.0, 1e-9, -3.5, 1e6])
def test_a_constant_is_kept_as_float16_has_it(value):
    restored = Int8KV.of(torch.full((1, 2, 1, 4, 8), value)).kv(torch.float32)
    assert torch.isfinite(restored).all() and (restored - value).abs().max() <= max(1e-7, abs(value) / 200)


def test_nothing_is_a_kv_too():
    stored = Int8KV.of(torch.zeros(3, 2, 2, 0, 8))
    assert stored.kv(torch.float32).shape == (3, 2, 2, 0, 8)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("key_scale", None),
        ("key_centre", torch.zeros(3, 2, 20, 1)),
        ("codes", torch.zeros(3, 2, 2, 20, 8)),
        ("codes", torch.zeros(3).char()),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(name, other):
    parts = {key: tensor for key, tensor in Int8KV.of(drawn()).tensors.items() if key != name or other is not None}
    with pytest.raises(ValueError, match=name):
        Int8KV.of_tensors(parts | ({} if other is None else {name: other}))

"""What presses keep, and how many bits are gone."""

import pytest
import torch

from hippo_core.protocols.cache.removal import PRESSES, REMOVALS, entropy, press, removed
from tests.protocols.cache.conftest import cache


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

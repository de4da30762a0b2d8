"""The Wiener filter over whole tokens: it brings back what the rest of a token tells, and leaves clean text alone."""

from dataclasses import replace

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.models.kv import encode
from hippo_core.protocols.cache.corruption import Corruption, corrupt
from hippo_core.protocols.cache.defences import load_defence
from hippo_core.protocols.cache.defences.wiener import KeyRotation, TokenPrior

RANK = 96


@pytest.fixture(scope="module")
def caches(lm):
    """Caches of sentences in other orders, each with the position of its first token."""
    generator = torch.Generator().manual_seed(0)
    words = lm.encode("The keeper of the north tower sold a brass lamp to Lea at dawn. Omar found the red vase in Oslo, or so they say.")
    rows = [[words[index] for index in torch.randint(len(words), (48,), generator=generator).tolist()] for _ in range(40)]
    before = encode(lm, [[0, 5, 6]])[0]
    return [(kv.float(), 3) for kv in encode(lm, rows, before)]


@pytest.fixture(scope="module")
def prior(lm, caches):
    return TokenPrior.of(KeyRotation(lm), caches[8:], RANK)


def left(prior, caches, fault):
    """The share of the squared damage that is left after the repair of caches that were not fitted."""
    lost, still = 0.0, 0.0
    for number, (kv, start) in enumerate(caches[:8]):
        broken = corrupt(kv, fault, 7, str(number)).kv
        lost += float((broken - kv).nan_to_num(0, 0, 0).clamp(-1e4, 1e4).pow(2).sum())
        still += float((prior.estimate(broken, start)[0] - kv).pow(2).sum())
    return still / lost


def test_a_rotation_is_undone_and_done_again(lm):
    [kv] = encode(lm, [[0, 7, 8, 7, 9, 7]])
    rotation = KeyRotation(lm)
    flat = rotation.undone(kv.float(), 0)
    assert torch.allclose(rotation.done(flat, 0), kv.float(), atol=1e-4)
    assert torch.allclose(flat[0, 0][:, 1], flat[0, 0][:, 5], atol=1e-2) and not torch.allclose(kv[0, 0][:, 1], kv[0, 0][:, 5], atol=0.1)
    assert torch.equal(flat[:, 1], kv.float()[:, 1])


@pytest.mark.parametrize(
    ("kind", "severity", "most"),
    [("gaussian", 0.5, 0.15), ("dropout_zero", 0.5, 0.1), ("bitflipish_sparse", 1.0, 0.02), ("bitflip", 1.0, 1e-6)],
)
def test_what_the_rest_of_a_token_tells_comes_back(prior, caches, kind, severity, most):
    assert left(prior, caches, Corruption(kind, severity)) < most


def test_a_clean_cache_stays_as_it_is_but_for_its_unlikeliest_features(prior, caches):
    for kv, start in caches[:8]:
        repaired = prior.estimate(kv, start)[0]
        assert (repaired == kv).float().mean() > 0.9 and (repaired - kv).norm() < 0.05 * kv.norm()


def test_it_is_the_other_layers_that_tell(lm, prior, caches):
    """One layer's prior knows less, and a prior of features that belong to other tokens knows nothing."""
    fault, shift = Corruption("gaussian", 0.5), 11
    layers = [TokenPrior.of(KeyRotation(lm), [(kv[2:3], start) for kv, start in caches[8:]], RANK)]
    alone = left(layers[0], [(kv[2:3], start) for kv, start in caches], fault)
    mixed = [(torch.stack([layer.roll(shift * at, 2) for at, layer in enumerate(kv)]), start) for kv, start in caches[8:]]
    strangers = left(TokenPrior.of(KeyRotation(lm), mixed, RANK), caches, fault)
    full = left(prior, caches, fault)
    assert full < alone and full < 0.5 * strangers


def test_the_defence_repairs_a_cache_part_by_part_and_says_what_it_lacks(setting, damaged, prior, lm, caches):
    kv, start = caches[0]
    broken = corrupt(kv, Corruption("dropout_zero", 0.5), 7, "a").kv
    wiener = load_defence("wiener", replace(setting, priors=lambda by_layer: [prior]))
    assert torch.equal(wiener.repair(damaged(broken, prefix=kv[:, :, :, :start])), prior.estimate(broken, start)[0])
    with pytest.raises(LabError, match="fitted"):
        load_defence("wiener", setting)

"""A few clean caches, as random numbers with a mean and outlying channels, and the model in git."""

import pytest
import torch

from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.cache.defences.base import CleanStatistics, DefenceContext, DefenceInput

SHAPE = (3, 2, 2, 40, 8)  # L, 2, H, T, D


def cache(seed, tokens=SHAPE[3]):
    generator = torch.Generator().manual_seed(seed)
    offset = torch.linspace(-3, 3, SHAPE[4])
    return torch.randn(*SHAPE[:3], tokens, SHAPE[4], generator=generator) + offset


@pytest.fixture(scope="session")
def lm():
    return load(load_spec("hippo-tiny"), threads=1)


@pytest.fixture
def setting(lm):
    known = [cache(seed) for seed in range(100, 108)]
    return DefenceContext(lm, CleanStatistics.of(known), known)


@pytest.fixture
def damaged():
    """A cache with its damage as a defence gets it."""

    def make(kv, address="a/0", mask=None, prefix=None, flipped=0.0):
        mask = torch.zeros(*kv.shape[:4], 1, dtype=torch.bool) if mask is None else mask
        return DefenceInput(kv, address, mask, kv[:, :, :, :0] if prefix is None else prefix, tuple(range(5, 5 + kv.shape[3])), flipped)

    return make

"""A few clean caches, as random numbers with a mean and outlying channels, the model in git, and rows of a measurement."""

import pandas as pd
import pytest
import torch

from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.cache.defences.base import CleanStatistics, DefenceContext, DefenceInput
from hippo_core.protocols.cache.parameters import CacheParameters

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


def measured(scores, **settings):
    """Rows of 20 probes, of which so many are right, by kind of fault (at severity 1) and defence."""
    parameters = {**CacheParameters().values(), "run_id": "made", "record": "r1", "cell": "c1", **settings}
    lines = []
    for (kind, defence), score in scores.items():
        for number in range(20):
            right = float(number < round(20 * score))
            row = {"probe": f"q{number}", "cluster": f"w{number}", "task": "text", "kind": kind, "severity": float(kind != "clean")}
            cost = {"damaged": 1.0, "detected": 0.5, "false_alarms": 0.0, "repair_ms": 1.0, "kept_bytes": 2000.0}
            cost |= {"scored_tokens": 2, "tokens_per_s": 50.0, "peak_mb": 300.0, "gpu_peak_mb": float("nan")}
            lines.append({**parameters, **row, "defence": defence, "score": right, "loss": 2 - right, "chance": 0.0, **cost})
    return pd.DataFrame(lines)

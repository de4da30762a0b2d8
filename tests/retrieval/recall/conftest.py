"""Small random models of three shapes with a random key head each: what recall does must not hang on what was fitted."""

import pytest
import torch

from hippo_core.models.prompt import lines_of
from hippo_core.retrieval.key_encoder import BlockStates, KeyHead, KeyModel, KeySettings
from hippo_core.retrieval.payload import Payload
from hippo_core.retrieval.text_encoder import KeyEncoder
from hippo_core.store.trace import Trace
from tests.models.handmade import folders, loaded

__all__ = ["folders", "loaded"]

TEXTS = (
    "On Friday, Carla sold a guitar at the market.",
    "On Friday, Omar sold a lamp at the market.",
    "In May, Lea painted a boat at the harbor.",
    "In May, Lea sold a boat at the market.",
    "Carla found a ring in the forest at noon.",
)


@pytest.fixture(params=["qwen2", "llama", "phi3"])
def lm(request, loaded):
    return loaded[request.param]


@pytest.fixture
def encoder(lm):
    torch.manual_seed(0)
    head = KeyHead(KeySettings(blocks=(0, 1), hidden=lm.config.hidden_size, units=256)).eval().requires_grad_(False)
    return KeyEncoder(KeyModel(BlockStates(lm, head.settings.blocks), head), 256, 24)


@pytest.fixture
def traces(lm, encoder):
    keys = encoder.keys(TEXTS)
    return [
        Trace("w", f"f{number}", text, time=number, id=number + 1, payload=Payload(tuple(line), (key,)))
        for number, (text, line, key) in enumerate(zip(TEXTS, lines_of(lm, TEXTS, "short"), keys, strict=True))
    ]

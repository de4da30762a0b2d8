"""Fixtures of these tests: small random models of three shapes, none with a sliding window, and hippo-tiny."""

import dataclasses

import pytest
from transformers import AutoModelForCausalLM

from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from tests.models.handmade import folders, loaded

__all__ = ["folders", "loaded"]


@pytest.fixture(scope="session")
def models(loaded, folders):
    """The random models and hippo-tiny, by name; Phi-3 without its sliding window."""
    phi = AutoModelForCausalLM.from_pretrained(folders["phi3"], sliding_window=None, trust_remote_code=False, use_safetensors=True).eval()
    return {**loaded, "phi3": dataclasses.replace(loaded["phi3"], model=phi), "hippo-tiny": load(load_spec("hippo-tiny"), "cpu")}


@pytest.fixture(params=["qwen2", "llama", "phi3", "hippo-tiny"])
def lm(request, models):
    """Each in turn."""
    return models[request.param]

"""A small transformer written in Hugging Face's format says what it said before."""

import pytest
import torch

from benchmarks.continual import stories
from benchmarks.continual.export import export, gpt2
from hippo_core.errors import LabError
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.forgetting.transformer import TransformerShape, initial, logits

SHAPE = TransformerShape(32, 300, layers=2, heads=2, width=32, fc1=32)
TEXTS = [f"the {who} saw the {what} ." for who in ("cat", "dog") for what in ("ball", "bird")] * 20


def weights():
    return initial(SHAPE, 0) + 0.1 * torch.randn(SHAPE.weights, generator=torch.Generator().manual_seed(1))


def test_a_folder_says_what_the_vector_said(tmp_path):
    tokenizer, text = stories.vocabulary(TEXTS, 300), "the dog saw the bird ."
    export(SHAPE, weights(), tokenizer, stories.END, tmp_path / "mine")
    lm = load(load_spec(str(tmp_path / "mine")), device="cpu")
    tokens = torch.tensor([lm.encode(text)])
    assert tokens[0].tolist() == tokenizer.encode(text).ids
    with torch.no_grad():
        theirs = lm.model(tokens).logits
    ours = logits(SHAPE, weights(), tokens, torch.arange(tokens.shape[1]).unsqueeze(0))
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_what_cannot_be_written_is_one_clear_line(tmp_path):
    tokenizer = stories.vocabulary(TEXTS, 300)
    with pytest.raises(LabError, match="is there; name a new folder"):
        export(SHAPE, weights(), tokenizer, stories.END, tmp_path)
    with pytest.raises(LabError, match="a sort layer is no GPT-2"):
        export(TransformerShape(32, 300, sort=2), weights(), tokenizer, stories.END, tmp_path / "mine")
    with pytest.raises(LabError, match="weights, got one of shape"):
        gpt2(SHAPE, weights()[:-1])

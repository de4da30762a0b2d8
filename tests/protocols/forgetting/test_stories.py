"""A model learns text for a moment, and says held-out text of the same kind better than other text; all is counted by hand."""

import math

import pytest
import torch

from benchmarks.continual import stories
from hippo_core.errors import LabError
from hippo_core.protocols.forgetting.transformer import TransformerShape, initial

KIND = [f"the {who} saw the {what} and the {what} ran ." for who in ("cat", "dog", "boy") for what in ("ball", "bird", "sun")] * 20
SHAPE = TransformerShape(32, 300, layers=2, heads=2, width=32)


@pytest.fixture(scope="module")
def tokenizer():
    return stories.vocabulary(KIND, 300)


def test_text_is_learnt_and_other_text_is_not(tokenizer):
    vector, steps = stories.learn(SHAPE, stories.tokens_of(tokenizer, KIND), 2.0, 1)
    mine, other = (stories.asked(SHAPE, vector, tokenizer, texts)["bits_per_byte"] for texts in (KIND[:9], ["zebra quiz; 93 xylophones"]))
    assert steps > 10 and mine < 1.0 < 4.0 < other


def test_what_is_asked_is_counted_by_hand(tokenizer):
    vector = torch.zeros_like(initial(SHAPE, 0))  # every token is as likely as any other
    result = stories.asked(SHAPE, vector, tokenizer, KIND[:9])
    tokens = len(stories.tokens_of(tokenizer, KIND[:9])) - 1
    assert result["tokens"] == tokens > 2 * SHAPE.block and tokens % SHAPE.block  # whole windows and one that is not
    assert result["nats"] == pytest.approx(math.log(300)) and result["perplexity"] == pytest.approx(300)
    assert result["bits_per_byte"] == pytest.approx(tokens * math.log2(300) / sum(len(text) for text in KIND[:9]))


def test_a_text_shorter_than_a_window(tokenizer):
    with pytest.raises(LabError, match="more than 32 tokens, got 20"):
        stories.learn(SHAPE, torch.zeros(20, dtype=torch.long), 1.0, 1)

"""The benches of benchmarks/continual: stories, linear functions in context and the scaling grid."""

import math

import pytest
import torch

from benchmarks.continual import linear, scaling, stories
from hippo_core.errors import LabError
from hippo_core.files import mistakes_in_a_line
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


LINEAR = linear.shape_of(2)


def drawn_functions(count=4):
    return linear.functions(count, 2, torch.Generator().manual_seed(0))


def test_a_prediction_knows_the_examples_before_it_and_its_own_x_alone():
    (x, y), vector = drawn_functions(), initial(LINEAR, 1)
    before = linear.predicted(LINEAR, vector, x, y)
    changed = y.clone()
    changed[:, 4:] += 1
    after = linear.predicted(LINEAR, vector, x, changed)
    assert torch.allclose(before[:, :5], after[:, :5], atol=1e-6) and not torch.allclose(before[:, 5], after[:, 5], atol=1e-6)
    x[:, 3] += 1
    assert not torch.allclose(before[:, 3], linear.predicted(LINEAR, vector, x, y)[:, 3], atol=1e-6)


def test_least_squares_knows_a_function_of_two_dimensions_from_two_examples():
    x, y = drawn_functions(50)
    result = linear.least_squares(x, y)
    assert (result[:, 0] == 0).all() and torch.allclose(result[:, 2:], y[:, 2:], atol=1e-2)
    assert (result[:, 1] - y[:, 1]).abs().max() > 0.5


def test_saying_nothing_has_an_error_of_one():
    result = linear.errors(LINEAR, torch.zeros(LINEAR.weights), 0, count=2000)
    assert result["model"].mean().item() == pytest.approx(1, abs=0.1)
    assert result["least squares"][:, 3:].mean().item() < 0.01


@pytest.mark.parametrize(("examples", "dimensions"), [(4, 3), (11, 2)])
def test_what_does_not_fit_the_model(examples, dimensions):
    with pytest.raises(LabError, match=f"10 examples of 2 dimensions cannot be asked {examples} examples of {dimensions} dim"):
        linear.predicted(LINEAR, initial(LINEAR, 1), torch.zeros(1, examples, dimensions), torch.zeros(1, examples))


SCALED = scaling.TransformerShape(8, 20, layers=1, heads=2, width=16)


def test_every_window_is_learnt_from_once(monkeypatch):
    seen = []
    monkeypatch.setattr(scaling, "BATCH", 2)
    monkeypatch.setattr(scaling, "nats", lambda shape, vector, windows: (seen.append(windows), vector.sum().unsqueeze(0))[1])
    scaling.learn(SCALED, torch.arange(8 * 7 + 1), 3)
    starts = [int(row[0]) for windows in seen for row in windows]
    assert sorted(starts) == [0, 8, 16, 24, 32, 40] and starts != sorted(starts)  # the seventh makes no batch
    assert all(row.tolist() == list(range(int(row[0]), int(row[0]) + 9)) for windows in seen for row in windows)


def test_more_text_has_a_lower_loss():
    tokens = torch.tensor([3, 5, 7, 9] * 400)
    losses = []
    for count in (100, 1600):
        vector = scaling.learn(SCALED, tokens[:count], 1)
        losses.append(scaling.nats(SCALED, vector, tokens[:9].unsqueeze(0)).mean().item())
    assert losses[1] < losses[0] - 0.5


def test_a_batch_larger_than_the_data_is_one_line_that_ends_the_command():
    with pytest.raises(LabError, match="a batch of 8 windows is larger than the data: expected more than 64 tokens, got 60"):
        scaling.learn(SCALED, torch.zeros(60, dtype=torch.long), 1)
    with pytest.raises(SystemExit, match="too little"), mistakes_in_a_line():
        raise LabError("too little")

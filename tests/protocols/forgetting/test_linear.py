"""Linear functions in context: what is predicted from what, and least squares by hand."""

import pytest
import torch

from benchmarks.continual import linear
from hippo_core.errors import LabError
from hippo_core.protocols.forgetting.transformer import initial

SHAPE = linear.shape_of(2)


def some(count=4):
    return linear.functions(count, 2, torch.Generator().manual_seed(0))


def test_a_prediction_knows_the_examples_before_it_and_its_own_x_alone():
    (x, y), vector = some(), initial(SHAPE, 1)
    before = linear.predicted(SHAPE, vector, x, y)
    changed = y.clone()
    changed[:, 4:] += 1
    after = linear.predicted(SHAPE, vector, x, changed)
    assert torch.allclose(before[:, :5], after[:, :5], atol=1e-6) and not torch.allclose(before[:, 5], after[:, 5], atol=1e-6)
    x[:, 3] += 1
    assert not torch.allclose(before[:, 3], linear.predicted(SHAPE, vector, x, y)[:, 3], atol=1e-6)


def test_least_squares_knows_a_function_of_two_dimensions_from_two_examples():
    x, y = some(50)
    result = linear.least_squares(x, y)
    assert (result[:, 0] == 0).all() and torch.allclose(result[:, 2:], y[:, 2:], atol=1e-2)
    assert (result[:, 1] - y[:, 1]).abs().max() > 0.5


def test_saying_nothing_has_an_error_of_one():
    result = linear.errors(SHAPE, torch.zeros(SHAPE.weights), 0, count=2000)
    assert result["model"].mean().item() == pytest.approx(1, abs=0.1)
    assert result["least squares"][:, 3:].mean().item() < 0.01


@pytest.mark.parametrize(("examples", "dimensions"), [(4, 3), (11, 2)])
def test_what_does_not_fit_the_model(examples, dimensions):
    with pytest.raises(LabError, match=f"10 examples of 2 dimensions cannot be asked {examples} examples of {dimensions} dim"):
        linear.predicted(SHAPE, initial(SHAPE, 1), torch.zeros(1, examples, dimensions), torch.zeros(1, examples))

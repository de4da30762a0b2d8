"""Fusion: weights that make the right candidates likeliest, and sums that leave no feature out unnoticed."""

import numpy as np
import pytest

from hippo_core.errors import LabError
from hippo_core.retrieval.fusion import Example, fit, fused


def drawn(seed, weights, n=300, candidates=8):
    """Examples whose right candidate is drawn by a conditional logit with these weights."""
    generator = np.random.default_rng(seed)
    for _ in range(n):
        features = {name: generator.normal(size=candidates) for name in weights}
        scores = sum(weights[name] * features[name] for name in weights) + generator.gumbel(size=candidates)
        yield Example(features, int(scores.argmax()))


def test_the_weights_of_a_conditional_logit_are_found_again():
    fitted_weights = fit(list(drawn(0, {"a": 2.0, "b": -1.0, "c": 0.0}, n=4000)))
    assert fitted_weights["a"] == pytest.approx(2.0, abs=0.15)
    assert fitted_weights["b"] == pytest.approx(-1.0, abs=0.1)
    assert abs(fitted_weights["c"]) < 0.1


def test_the_scale_of_a_feature_means_nothing():
    examples = list(drawn(1, {"a": 1.0, "b": 1.0}))
    scaled = [Example({**example.features, "b": example.features["b"] * 1000}, example.right) for example in examples]
    plain, other = fit(examples), fit(scaled)
    assert other["b"] * 1000 == pytest.approx(plain["b"], rel=1e-2)
    assert other["a"] == pytest.approx(plain["a"], rel=1e-2)


def test_a_sum_is_the_sum_and_lacks_no_weight():
    features = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 0.0])}
    assert fused(features, {"a": 2.0, "b": 1.0, "unused": 9.0}).tolist() == [5.0, 4.0]
    with pytest.raises(LabError, match="no weight for b; there are weights for a: fit them again"):
        fused(features, {"a": 1.0})

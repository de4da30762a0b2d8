"""Where a training loss falls to a level, and what was measured there, by hand."""

import math

import pytest

from hippo_core.protocols.forgetting.matched import at, matched, moment


@pytest.mark.parametrize(
    ("training", "level", "expected"),
    [
        ([0.7, 0.4, 0.2], 0.5, 2 / 3),
        ([0.7, 0.4, 0.2], 0.2, 2.0),
        ([0.7, 0.3, 0.6, 0.1], 0.5, 0.5),  # the first time
        ([0.7, 0.4, 0.2], 0.1, math.nan),  # never
        ([0.4, 0.3], 0.5, math.nan),  # from the beginning
    ],
)
def test_the_moment_at_which_a_loss_falls_to_a_level(training, level, expected):
    assert moment(training, level) == pytest.approx(expected, nan_ok=True)


def test_values_between_two_looks():
    assert at([1.0, 3.0, 2.0], 0.25) == 1.5 and at([1.0, 3.0, 2.0], 2.0) == 2.0
    assert math.isnan(at([1.0, 3.0], math.nan))


def look(step, models, training, copy, parity):
    tasks = {name: {"nats": nats, "right": [1 - one for one in nats]} for name, nats in (("copy", copy), ("parity", parity))}
    return {"step": step, "models": models, "training": training, **tasks}


def test_all_tasks_of_a_model_at_a_level():
    looks = [
        look(0, [0, 1], [0.7, 0.9], [0.1, 0.2], [0.8, 0.9]),
        look(10, [0, 1], [0.5, 0.7], [0.5, 0.5], [0.6, 0.7]),
        look(10, [0, 1], [0.5, 0.7], [0.3, 0.4], [0.6, 0.7]),  # once more, after a kill
        look(20, [1], [0.3], [0.8], [0.4]),  # the other has learnt it
    ]
    first = matched(looks, 0, ("copy", "parity"), (0.6, 0.4))
    assert first["copy"] == pytest.approx(
        {"loss_at_0.6": 0.2, "accuracy_at_0.6": 0.8, "loss_at_0.4": math.nan, "accuracy_at_0.4": math.nan}, nan_ok=True
    )
    second = matched(looks, 1, ("copy", "parity"), (0.6, 0.4))
    assert second["copy"]["loss_at_0.6"] == pytest.approx(0.4 + 0.25 * 0.4)
    assert second["parity"]["accuracy_at_0.4"] == pytest.approx(0.25 * 0.3 + 0.75 * 0.6)

"""A cell of the scaling grid goes once through its text, and its figure is drawn."""

import pytest
import torch

from benchmarks.continual import scaling
from hippo_core.errors import LabError
from hippo_core.files import mistakes_in_a_line

SHAPE = scaling.TransformerShape(8, 20, layers=1, heads=2, width=16)


def test_every_window_is_learnt_from_once(monkeypatch):
    seen = []
    monkeypatch.setattr(scaling, "BATCH", 2)
    monkeypatch.setattr(scaling, "nats", lambda shape, vector, windows: (seen.append(windows), vector.sum().unsqueeze(0))[1])
    scaling.learn(SHAPE, torch.arange(8 * 7 + 1), 3)
    starts = [int(row[0]) for windows in seen for row in windows]
    assert sorted(starts) == [0, 8, 16, 24, 32, 40] and starts != sorted(starts)  # the seventh makes no batch
    assert all(row.tolist() == list(range(int(row[0]), int(row[0]) + 9)) for windows in seen for row in windows)


def test_more_text_has_a_lower_loss():
    tokens = torch.tensor([3, 5, 7, 9] * 400)
    losses = []
    for count in (100, 1600):
        vector = scaling.learn(SHAPE, tokens[:count], 1)
        losses.append(scaling.nats(SHAPE, vector, tokens[:9].unsqueeze(0)).mean().item())
    assert losses[1] < losses[0] - 0.5


def test_a_batch_larger_than_the_data_is_one_line_that_ends_the_command():
    with pytest.raises(LabError, match="a batch of 8 windows is larger than the data: expected more than 64 tokens, got 60"):
        scaling.learn(SHAPE, torch.zeros(60, dtype=torch.long), 1)
    with pytest.raises(SystemExit, match="too little"), mistakes_in_a_line():
        raise LabError("too little")

"""Courses of small models on tasks that take a moment."""

import pytest
import torch

from hippo_core.protocols.forgetting import run
from hippo_core.protocols.forgetting.learners import quadratic
from hippo_core.protocols.forgetting.parameters import ForgettingParameters
from hippo_core.protocols.forgetting.run import Course
from hippo_core.protocols.forgetting.transformer import PRESETS, TransformerShape


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Makes a course of phases: two tasks, few steps, validation items examined."""

    monkeypatch.setattr(quadratic, "EXAMINED", 4)
    monkeypatch.setattr(run, "SOME", 8)
    monkeypatch.setitem(PRESETS, "tiny", TransformerShape(24, width=16, heads=2))  # type: ignore[arg-type]

    def make(folder="course", bar=False, **values):
        torch.manual_seed(0)
        quick = {"model": "tiny", "tasks": ["majority", "copy"], "steps": 10, "inits": 2, "batch": 8, "split": "val"}
        return Course(ForgettingParameters(**(quick | values)), tmp_path / folder, say=lambda line: None, bar=bar)

    return make

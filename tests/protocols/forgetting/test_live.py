"""What a person sees while models learn, and passes that are translated first."""

import sys
from types import SimpleNamespace

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.protocols.forgetting import learner
from hippo_core.protocols.forgetting.live import Live

LINE = {"phase": 1, "step": 10, "models": [0, 1], "training": [3.0, 2.0], "copy": {"nats": [0.5, 0.7], "right": [0.9, 0.7]}}


class Board:
    """A SummaryWriter that remembers."""

    def __init__(self, folder):
        self.folder, self.scalars, self.open = folder, {}, True

    def add_scalar(self, name, value, step):
        self.scalars.setdefault(name, []).append((step, value))

    def close(self):
        self.open = False


@pytest.fixture
def boards(monkeypatch):
    made = []
    writer = lambda folder: made.append(Board(folder)) or made[-1]  # noqa: E731
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=writer))
    return made


def test_every_look_is_a_point_of_each_models_curves(boards, tmp_path):
    live = Live(tmp_path, [1337, 1338], phases=2, steps=20, bar=False)
    live.show(LINE)
    live.show(LINE | {"step": 20, "models": [1], "training": [1.5], "copy": {"nats": [0.1], "right": [1.0]}})
    live.close()
    assert [board.folder for board in boards] == [str(tmp_path / "init_1337"), str(tmp_path / "init_1338")]
    assert boards[0].scalars == {"loss/training": [(30, 3.0)], "loss/copy": [(30, 0.5)], "accuracy/copy": [(30, 0.9)]}
    assert boards[1].scalars["accuracy/copy"] == [(30, 0.7), (40, 1.0)]
    assert not any(board.open for board in boards)


def test_without_tensorboard_there_is_a_bar_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    live = Live(tmp_path / "boards", [1337, 1338], phases=2, steps=20, bar=True)
    live.show(LINE)
    live.close()
    assert "30/40" in (output := capsys.readouterr().err) and "copy=0.80" in output
    assert not (tmp_path / "boards").exists()


def test_a_course_shows_what_it_writes(course, boards, tmp_path):
    going = course()
    going.live = Live(tmp_path / "boards", going.learner.seeds, 2, going.steps, bar=False)
    going.run()
    lines = going.curve.read_text(encoding="utf-8").splitlines()
    assert len(boards[0].scalars["loss/training"]) == len(lines) == 4


def test_only_passes_that_are_learnt_from_are_translated(course, monkeypatch):
    passes = []
    monkeypatch.setattr(torch, "compile", lambda run, fullgraph: lambda *given: passes.append(torch.is_grad_enabled()) or run(*given))
    plain, translated = course("plain").run(), course("translated", compiled=True).run()
    assert passes == [True] * 20
    assert [row["accuracy"] for row in plain] == [row["accuracy"] for row in translated]


def test_translating_needs_a_compiler(course, monkeypatch):
    monkeypatch.setattr(learner, "which", lambda name: None)
    with pytest.raises(LabError, match=r"C\+\+ compiler"):
        course(compiled=True)

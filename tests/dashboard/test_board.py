"""The dashboard: its first panel waits for nothing, the others are made when they are turned to."""

import subprocess
import sys

import pytest

from hippo_core.dashboard.board import Dashboard
from hippo_core.errors import LabError


@pytest.fixture
def board(runs):
    board = Dashboard(run="whole", runs=runs)
    yield board
    board.close()


def test_the_first_panel_is_there_before_torch_and_statistics():
    """Seconds of imports, for which a page would stay empty."""
    code = (
        "import sys; from hippo_core.dashboard.board import Dashboard; Dashboard();"
        "sys.exit(bool({'torch', 'transformers', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_tab_that_is_turned_to_gets_its_panel(board):
    assert "Compare" not in board.saved()
    board.widget.selected_index = 1
    assert board.widget.children[1] is board.compare.widget
    assert board.compare["run"] == "whole"
    assert "<h3>Compare</h3>" in board.saved() and "<h3>Ablate</h3>" not in board.saved()
    board.widget.selected_index = 2
    assert board.widget.children[2] is board.ablate.widget


def test_a_row_of_ablate_opens_compare(board):
    board.ablate.table.selected = "ablations/no_sparsity"
    assert board.widget.selected_index == 1
    assert board.compare["a"] == "ablations/no_sparsity"


def test_an_unknown_run_is_said_with_the_legal_ones(runs):
    with pytest.raises(LabError, match=r"unknown run 'nobody'; legal: .*whole"):
        Dashboard(run="nobody", runs=runs)

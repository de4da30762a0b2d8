"""The printed command runs the same cell: a shell gives its words back, and the command line reads the same values."""

import shlex
from pathlib import Path

import pytest

from hippo_core.lab.run.cells import Cell, command
from hippo_core.protocols.base.assignments import assignments


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "two words; touch x",
        "$(touch x) `touch x` && 'x' \"y\"",
        "a: b # c",
        "010",
        "yes",
        "null",
        "\U0001f44d: \x1b[2J",
        "[a",
        "line\nline",
        ["a", "b c", "010", "x, y", "$(touch x)"],
        ["a", 1, True],
        True,
        7,
        0.5,
        None,
        [],
    ],
)
def test_a_printed_command_gives_its_values_back(value):
    words = shlex.split(command(cell({"suite": value})))
    assert assignments(words[3:]) == {"suite": value} and words[1:3] == ["notebook", "01_x"]


def test_a_plain_list_is_printed_plainly():
    assert command(cell({"conditions": ["a", "b/c"], "n": 4})).endswith("conditions='[a, b/c]' n=4")


def cell(parameters):
    return Cell("01_x", parameters, "id", Path("record"), "label")

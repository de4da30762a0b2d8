"""A wrong command line ends in one line that says why; the long list is in tests/faults/test_wrong_commands.py."""

import pytest

from tests.lab.cli.wrong_commands import SHORT, beside, command_lines, ended


@pytest.fixture(scope="module")
def other_lab(tmp_path_factory):
    with beside(tmp_path_factory.mktemp("wrong") / "lab") as lab_dir:
        yield lab_dir


@pytest.mark.parametrize("words", command_lines(SHORT), ids=lambda words: " ".join(words)[-40:])
def test_a_wrong_command_ends_in_a_line(other_lab, words, capsys, monkeypatch):
    monkeypatch.setenv("HIPPO_ROOT", str(other_lab))
    monkeypatch.chdir(other_lab / "executed")
    code, lines = ended([word.replace("{lab}", str(other_lab)) for word in words], capsys, monkeypatch)
    assert code in (1, 2) and len(lines) <= 1 + (words[1:2] == ["verify"]), lines


@pytest.mark.parametrize(("option", "number"), [("--size", "-5"), ("--size", "0"), ("--seed", "-1"), ("--jobs", "0")])
def test_a_number_out_of_range_is_named_with_its_option(other_lab, option, number, capsys, monkeypatch):
    monkeypatch.setenv("HIPPO_ROOT", str(other_lab))
    code, [line] = ended(["grid-plan", "smoke", option, number], capsys, monkeypatch)
    assert code == 2 and line.startswith(f"Invalid value for '{option}'")

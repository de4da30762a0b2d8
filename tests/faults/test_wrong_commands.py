"""Two hundred wrong command lines, in one process."""

from tests.faults.conftest import LONG
from tests.lab.cli.wrong_commands import MORE, SHORT, beside, command_lines, ended


def test_wrong_commands_end_in_a_line(tmp_path, capsys, monkeypatch):
    short, wrong = list(command_lines(SHORT)), []
    with beside(tmp_path / "lab") as lab_path:
        monkeypatch.setenv("HIPPO_ROOT", str(lab_path))
        monkeypatch.chdir(lab_path / "executed")
        for words in [*short, *command_lines(MORE)] if LONG else short[-3:]:
            try:
                code, lines = ended([word.replace("{lab}", str(lab_path)) for word in words], capsys, monkeypatch)
            except BaseException as error:
                code, lines = type(error).__name__, [str(error)[:200]]
            lines = [line for line in lines if not line.startswith("left out, not counted: ")]  # said of a record, whatever comes of it
            if code not in (1, 2) or len(lines) != 1 + (words == ["records", "verify", "damaged"]):
                wrong.append((" ".join(words)[:80], code, lines[:3]))
    assert wrong == []

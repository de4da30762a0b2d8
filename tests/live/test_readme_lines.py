"""The lines of Python in the README are run as they stand."""

import re

from hippo_core.files import root


def test_the_ten_lines_of_the_readme_do_what_they_say(tmp_path, monkeypatch, capsys):
    [lines] = re.findall(r"```python\n(.*?)```", (root() / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(lines, space)
    assert str(space["answer"]) == "station"
    assert "Ben gave the lamp to Carl." in capsys.readouterr().out
    again = space["Memory"]("hippo-tiny").open("my_memory")
    assert [trace.text for trace in again.traces()] == ["Anna left the bicycle at the station."]
    again.close()

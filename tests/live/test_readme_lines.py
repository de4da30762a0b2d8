"""The lines of Python in the README are run as they stand, and print what stands beside them."""

import re

import pytest

from hippo_core import Memory
from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.live import memory as live
from hippo_core.models.packages.pins import missing
from hippo_core.models.spec import READER, load_spec

reader = pytest.mark.skipif(missing(load_spec(READER)) is not None, reason="`make models` brings the reader")


@reader
def test_the_lines_of_the_readme_print_what_stands_beside_them(tmp_path, monkeypatch, capsys):
    lines, _ = re.findall(r"```python\n(.*?)```", (root() / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    printed = [line for line in lines.splitlines() if line.startswith("print(")]
    expected = [line.partition(")  # ")[2].partition(" (")[0] for line in printed]
    monkeypatch.chdir(tmp_path)
    exec(lines, {})
    assert all(expected) and capsys.readouterr().out.splitlines() == expected
    with Memory().open("my_memory", read_only=True) as again:
        assert [trace.text for trace in again.traces()] == ["Anna left the bicycle at the station."]


def test_without_the_reader_a_memory_says_how_to_get_it_and_what_else_there_is(monkeypatch):
    monkeypatch.setattr(live, "missing", lambda spec: f"model {spec.name}: no weights at data/models/x; run `make models`")
    with pytest.raises(LabError, match=r'smollm2-135m-reader: no weights .*run `make models`; or take Memory\("hippo-tiny"\)'):
        Memory()

"""YAML means one thing, or is refused in one line that names the place; the lab's own files mean what they always meant."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.files import YAML_BYTES, read_object, read_yaml, root

BOMB = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x]", *(f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]" for a, b in zip("abcdefg", "bcdefgh", strict=True))]
)
REFUSED = {
    "a key twice": ("a: 1\nb: 2\na: 3", "line 3: the key 'a' stands twice"),
    "a key twice, deeper": ("x:\n  - {k: 1, k: 2}", "line 2: the key 'k' stands twice"),
    "a key twice, quoted": ("a: 1\n'a': 2", "line 2: the key 'a' stands twice"),
    "octal": ("a: 010", "line 1: 010 may be read in two ways"),
    "octal in a list": ("- 1\n- -007", "line 2: -007 may be read in two ways"),
    "minutes": ("a: 1:30", "1:30 may be read in two ways"),
    "minutes with a fraction": ("a: 1:30.5", "1:30.5 may be read in two ways"),
    "a word as a key": ("on: push", "the key 'on' is read as true, false or nothing"),
    "nothing as a key": ("~: 1", "the key '~' is read as"),
    "deep in brackets": ("[" * 100_000, "nested more than 100 deep"),
    "deep in lists": ("- " * 100_000, "nested more than 100 deep"),
    "deep in keys": ("{a: " * 100_000, "nested more than 100 deep"),
    "a bomb": (BOMB, "stands for more than 1,000,000 values"),
    "a ring": ("a: &a [*a]", "an alias stands inside what it repeats"),
    "another type": ("a: !!int x", "a value is not what its tag says"),
    "a list as a key": ("? [a]\n: 1", "unhashable"),
    "code": ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
    "many digits": ("a: " + "1" * 5000, "a value is not what its tag says"),
    "a control character": ("a: \0", "not valid YAML"),
    "two documents": ("--- 1\n--- 2", "expected a single document"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_plain_is_refused_in_a_line(tmp_path, text, why):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(LabError) as error:
        read_yaml(tmp_path / "x.yaml")
    assert why in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 600


@pytest.mark.parametrize("content", [b"a: \xff", "a: \u00e9".encode("latin-1"), "a: 1".encode("utf-16")], ids=["byte", "latin", "utf-16"])
def test_another_encoding_is_said(tmp_path, content):
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(LabError, match="is not UTF-8 text"):
        read_yaml(tmp_path / "x.yaml")


def test_what_is_no_file_or_too_large_is_said(tmp_path):
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(YAML_BYTES + 1)
    for name, why in (("large.yaml", "too large"), ("", "is a folder"), ("none.yaml", "no such file")):
        with pytest.raises(LabError, match=why):
            read_yaml(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "value"),
    [("'010'", "010"), ("10", 10), ("0", 0), ("0.5", 0.5), ("1_000", 1000), ("off", False), ("2024-01-02", "2024-01-02"), ("08", "08")],
)
def test_what_means_one_thing_is_read(tmp_path, text, value):
    (tmp_path / "x.yaml").write_text(f"a: {text}\nb: &b [1]\nc: *b\nd: {{<<: {{e: 1}}, f: 2}}")
    assert read_yaml(tmp_path / "x.yaml") == {"a": value, "b": [1], "c": [1], "d": {"e": 1, "f": 2}}


def test_the_labs_own_files_mean_what_they_meant():
    files = [path for folder in ("params", "docs", "tests", "data") for path in (root() / folder).rglob("*.yaml")]
    assert len(files) > 100
    for path in files:
        assert read_yaml(path) == yaml.safe_load(path.read_text(encoding="utf-8")), path


@settings(max_examples=150, deadline=None)
@given(content=st.one_of(st.binary(max_size=80), st.text("ab:-[]{}&*!?|>#'\"%~<= \n\t0123.xy", max_size=80).map(str.encode)))
def test_any_bytes_are_read_or_refused_in_a_line(tmp_path_factory, content):
    path = Path(tmp_path_factory.getbasetemp()) / "any.yaml"
    path.write_bytes(content)
    for read in (read_yaml, read_object):
        try:
            read(path)
        except LabError as error:
            assert "\n" not in str(error)

"""Files of others: the table for people is the lab's list, content is checked, and what is not there is said in one line."""

import re
from hashlib import sha256

import pytest
import yaml

from hippo_core import text_files
from hippo_core.errors import LabError
from hippo_core.files import root
from tests.texts import needs

TEXT = "A text of somebody else.\n"
ENTRY = {"path": "some/text.txt", "sha256": sha256(TEXT.encode()).hexdigest(), "bytes": len(TEXT), "title": "A text"}
ENTRY |= {"source": "https://example.org/repository text.txt", "commit": "0" * 40, "licence": "MIT"}


@pytest.fixture
def lab_dir(tmp_path, monkeypatch):
    """A lab that lists one text, and a folder that has it."""
    (tmp_path / "params").mkdir()
    (tmp_path / "params/data.yaml").write_text(yaml.safe_dump({"folder": None, "files": {"text": ENTRY}}))
    (tmp_path / "texts/some").mkdir(parents=True)
    (tmp_path / "texts/some/text.txt").write_text(TEXT)
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    monkeypatch.delenv("HIPPO_DATA", raising=False)
    return tmp_path


def test_the_table_for_people_is_the_list():
    rows = [line for line in (root() / "data/README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    shown = {
        name: {"path": path, "title": title, "bytes": int(size.replace(",", "")), "sha256": sha, "source": source}
        | {"commit": commit, "licence": licence}
        for name, path, title, size, sha, source, commit, licence in (
            [cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows
        )
    }
    assert shown == {name: entry.model_dump() for name, entry in text_files.listed().files.items()}


def test_nothing_of_others_is_kept_but_names():
    assert {path.name for path in (root() / "data/samples").glob("*")} <= {"names"}
    listed = {entry.sha256 for entry in text_files.listed().files.values()}
    kept = {sha256(path.read_bytes()).hexdigest() for path in (root() / "data/samples").rglob("*") if path.is_file()}
    assert not listed & kept


@needs(*text_files.listed().files)
def test_every_listed_file_is_what_the_list_says():
    for name, entry in text_files.listed().files.items():
        assert text_files.path_of(name).stat().st_size == entry.bytes


@pytest.mark.parametrize("named", ["variable", "relative variable", "setting"])
def test_the_folder_is_named_by_the_variable_or_in_the_list(lab_dir, monkeypatch, named):
    assert text_files.data_folder() is None
    if named == "setting":
        (lab_dir / "params/data.yaml").write_text(yaml.safe_dump({"folder": "texts", "files": {"text": ENTRY}}))
    else:
        monkeypatch.setenv("HIPPO_DATA", "texts" if named.startswith("relative") else str(lab_dir / "texts"))
    assert text_files.why_missing(["text"]) is None
    assert text_files.read_text("text") == TEXT
    assert text_files.path_of("text") == lab_dir / "texts/some/text.txt"


@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_a_file_that_is_not_there_is_one_line(lab_dir, monkeypatch, folder):
    monkeypatch.setenv("HIPPO_DATA", folder)
    reason = text_files.why_missing(["text"])
    expected = str(lab_dir / "nowhere/some/text.txt") if folder else "no folder is named"
    where = f"{'expected ' * bool(folder)}{expected}"
    assert reason == f"text missing (A text): {where}; set HIPPO_DATA to a folder with the files of data/README.md"
    for read in (text_files.require, text_files.read_text, text_files.path_of):
        with pytest.raises(LabError, match=f"^{re.escape(reason)}$"):
            read("text")


def test_another_content_is_an_error_that_says_where_the_right_one_is(lab_dir, monkeypatch):
    monkeypatch.setenv("HIPPO_DATA", str(lab_dir / "texts"))
    (lab_dir / "texts/some/text.txt").write_text("Another one.\n")
    actual = sha256(b"Another one.\n").hexdigest()
    for read in (text_files.read_text, text_files.path_of):
        with pytest.raises(LabError) as error:
            read("text")
        came = f"expected SHA-256 {ENTRY['sha256']} (25 bytes), got {actual} (13 bytes)"
        assert str(error.value) == f"text at {lab_dir}/texts/some/text.txt: {came}; take it from {ENTRY['source']} at {ENTRY['commit']}"


def test_a_name_that_is_not_listed_lists_those_that_are(lab_dir):
    with pytest.raises(LabError, match="unknown text file 'novel'; legal: text"):
        text_files.require("novel")


def test_a_path_may_not_leave_the_folder(lab_dir):
    (lab_dir / "params/data.yaml").write_text(yaml.safe_dump({"files": {"text": {**ENTRY, "path": "../text.txt"}}}))
    with pytest.raises(LabError, match=r"params/data.yaml: files.text.path: .*below a folder"):
        text_files.listed()

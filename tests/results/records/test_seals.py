"""A record that is not what its seal says is in no table, on no page and in no archive, and it is said which file differs."""

import json
import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.results import records
from hippo_core.results.records.archive import Archive
from hippo_core.results.records.sealed import wrong_with
from hippo_core.results.report import PagePart, write_report
from tests.results.records.test_records import make

READERS = (records.read_rows, lambda run: records.read_table(run, "answer"))
PLAIN = st.none() | st.text(max_size=4) | st.integers()
JSON = st.recursive(PLAIN, lambda part: st.lists(part) | st.dictionaries(st.text(max_size=4), part), max_leaves=6)
NAME = "run/baselines/core/episodic/12_1/delayed-test-"


def edit(record):
    path = record / "metrics.csv"
    path.write_text(path.read_text().replace("w0/q1,", "w0/q7,", 1))


def link(record):
    (record / "meta.json").rename(record.parents[3] / "meta.json")
    (record / "meta.json").symlink_to(record.parents[3] / "meta.json")


def done(**content):
    return lambda record: (record / "DONE").write_text(json.dumps(content))


DAMAGE = {
    "a score": (edit, "metrics.csv was changed after the record was finished"),
    "a lost file": (lambda record: (record / "metrics.json").unlink(), "metrics.json is missing"),
    "one more file": (lambda record: (record / "drawings.json").write_text("{}"), "drawings.json was added after"),
    "a link": (link, "meta.json is a link"),
    "no file named": (done(sha256={}), "names no files"),
    "a way out": (done(sha256={"../x": "0" * 64}), "'../x' is no path below the record"),
    "an absolute path": (done(sha256={"/etc/passwd": "0" * 64}), "'/etc/passwd' is no path"),
    "no checksum": (done(sha256={"meta.json": None}), "with a SHA-256"),
    "a list": (done(sha256=[]), "names no files"),
    "no object": (lambda record: (record / "DONE").write_text("[" * 100_000), "its DONE file is damaged"),
    "a name twice": (lambda record: (record / "DONE").write_text('{"sha256": {"a": "0", "a": "1"}}'), "each key once"),
    "other bytes": (lambda record: (record / "DONE").write_bytes(b"\xff\xfe"), "its DONE file is damaged"),
}


@pytest.fixture
def run(tmp_path):
    """A run of two records, the second of which is to be damaged."""
    make(tmp_path / f"{NAME}00000000")
    make(tmp_path / f"{NAME}11111111")
    return tmp_path / "run"


@pytest.mark.parametrize(("damage", "why"), DAMAGE.values(), ids=DAMAGE)
def test_a_record_that_differs_is_left_out_and_said(run, capsys, damage, why):
    record = run.parent / f"{NAME}11111111"
    assert len(records.read_rows(run)) == 24
    damage(record)
    assert len(records.read_rows(run)) == len(records.read_table(run, "answer")) == 12
    assert [record.name for record in records.records_with(run)] == ["delayed-test-00000000"]
    assert why in wrong_with(record)[0] and "\n" not in wrong_with(record)[0]
    assert len(records.damaged(run)) == 1 and why in records.damaged(run)[0]
    warnings = capsys.readouterr().err
    assert warnings.startswith("left out, not counted: run/") and why in warnings and warnings.count("\n") == 1
    assert records.verify(run)[1]
    with records.as_of_now(run):
        assert len(records.read_rows(run)) == 12 and records.damaged(run)


def test_where_all_differ_it_is_said_why_nothing_is_there(run):
    for record in records.records_with(run):
        edit(record)
    for read in READERS:
        with pytest.raises(LabError, match=r"2 faults in its records, the first: .*metrics.csv was changed"):
            read(run)


def test_a_time_that_is_put_back_hides_no_change(run):
    path = run.parent / f"{NAME}11111111/metrics.csv"
    state, _ = path.stat(), records.read_rows(run)
    edit(path.parent)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert len(records.read_rows(run)) == 12


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ({}, "expected parameters to be an object"),
        ({"parameters": []}, "expected parameters to be an object"),
        ({"parameters": {}, "table": 1}, "expected table to be an object"),
        ({"parameters": {}, "step": 1}, "expected step to be a string"),
        ({"parameters": {}, "table": {"file": "../x.csv", "unit": "", "cluster": "", "text": [], "whole": []}}, "the name of a CSV file"),
        ({"parameters": {}, "table": {"file": "x.csv", "unit": "", "cluster": "", "text": [1], "whole": []}}, "a list of strings"),
    ],
)
def test_a_meta_of_another_form_is_a_line(run, meta, why):
    record = run.parent / f"{NAME}11111111"
    (record / "meta.json").write_text(json.dumps(meta))
    records.seal(record)
    assert why in records.damaged(run)[0] and len(records.read_rows(run)) == 12


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["meta.json", "DONE", "metrics.csv", "config_snapshot.yaml", "metrics.json"]),
    content=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()),
    sealed=st.booleans(),
)
def test_any_content_of_a_record_is_read_or_refused_in_a_line(tmp_path_factory, name, content, sealed):
    run = tmp_path_factory.mktemp("any") / "run"
    record = make(run.parent / f"{NAME}00000000")
    (record / name).write_bytes(content)
    if sealed and name != "DONE":
        records.seal(record)
    for read in (*READERS, records.verify, lambda path: records.diff(path, path)):
        try:
            read(run)
        except LabError as error:
            assert "\n" not in str(error)


def test_a_changed_record_is_not_copied_to_an_archive(run, monkeypatch, tmp_path):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    record = records.run_folder("run") / NAME.partition("/")[2] / "cell"
    shutil.copytree(run.parent / f"{NAME}00000000", record)
    edit(record)
    with pytest.raises(LabError, match=r"is not copied to .*metrics.csv was changed"):
        Archive(str(tmp_path / "shared")).push(record)
    assert not (tmp_path / "shared").exists()


@pytest.mark.parametrize("name", ["../../outside.txt", "/outside.txt", "a/../../outside.txt"])
def test_an_archive_writes_nothing_outside_a_record(run, monkeypatch, tmp_path, name):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path / "lab"))
    there = tmp_path / "shared/run/cell"
    shutil.copytree(run.parent / f"{NAME}00000000", there)
    (tmp_path / "shared/outside.txt").write_text("")
    (there / "DONE").write_text(json.dumps({"sha256": {name: "0" * 64}}))
    with pytest.raises(LabError, match="its DONE file is damaged"):
        Archive(str(tmp_path / "shared")).pull(["run/cell"])
    assert not list((tmp_path / "lab").rglob("outside.txt")) and not (tmp_path / "lab/executed/run/cell").exists()


def test_the_page_of_a_report_says_what_is_left_out(run, tmp_path):
    edit(run.parent / f"{NAME}11111111")
    write_report(run, tmp_path / "out", pages=[lambda *_: [PagePart("Facts.", "Found.")]])
    for page in ("index.html", "index.md"):
        assert "delayed-test-11111111: metrics.csv was changed after" in (tmp_path / "out" / page).read_text()

"""What a second reader expects of a suite, and how far the labels agree with it."""

import json

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired.lint import FILE, agreement, examined
from hippo_core.protocols.paired.suite import read_suite
from tests.protocols.paired import suites


def read(folder, **others):
    """The suite with a second reading that agrees with it but for `others`."""
    suite = read_suite(suites.write(folder))
    lines = [{"id": item.id, "notes": ["n1"], "answer": f"It hangs on shelf {item.world}."} for item in suite.items]
    lines = [line | others.get(line["id"].replace("-", "_"), {}) for line in lines]
    (folder / FILE).write_text("# with the labels hidden\n" + "\n".join(map(json.dumps, lines)) + "\n")
    return suite


def test_readers_that_agree(tmp_path):
    suite = read(tmp_path / "s")
    result = agreement(suite)
    assert (result.items, result.notes.mean, result.notes.n, result.other_notes, result.other_answers) == (26, 1.0, 78, (), ())
    assert not [finding for finding in examined(suite) if "second reading" in finding.what]


def test_other_notes_and_answers_are_named(tmp_path):
    others = {"amber_r": {"notes": ["n1", "n2"]}, "birch_g": {"answer": "not on shelf birch"}, "dune_r": {"stale_notes": ["n3"]}}
    result = agreement(suite := read(tmp_path / "s", **others))
    assert result.other_notes == ("amber-r", "dune-r") and result.other_answers == ("birch-g",)
    assert 0.9 < result.notes.low <= result.notes.mean < result.notes.high == 1.0 and result.notes.n_worlds == 13
    findings = [finding.what for finding in examined(suite) if "second reading" in finding.what]
    assert findings[0].endswith("2 rest on other notes: amber-r, dune-r") and findings[1].endswith(
        "1 have an answer that counts as wrong: birch-g"
    )


def test_what_was_not_read_is_reported(tmp_path):
    suite = read(tmp_path / "s")
    assert agreement(read_suite(suites.write(tmp_path / "other"))) is None
    path = suite.folder / FILE
    path.write_text("\n".join(path.read_text().splitlines()[:-2]) + "\n")
    assert "2 items have no second reading" in [finding.what for finding in examined(suite)]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "nobody-r"}', "second_reading.jsonl:28 'nobody-r'"),
        ('{"id": "amber-r", "notes": ["n1"]}', "expected an id of its own"),
        ('{"id": "amber-r", "note": ["n1"]}', "28"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path, line, says):
    suite = read(tmp_path / "s")
    (suite.folder / FILE).open("a").write(line + "\n")
    with pytest.raises(LabError) as error:
        agreement(suite)
    assert says in str(error.value)


def test_the_complete_shipped_suite_was_read_a_second_time():
    suite = read_suite("data/paired/everyday")
    result = agreement(suite)
    assert suite.manifest.label_status == "reviewed" and result.items == len(suite.items)
    assert result.notes.mean > 0.9 and len(result.other_notes) == 3 and len(result.other_answers) == 13  # listed in its README

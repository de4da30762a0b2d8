"""A suite is read as it was meant, or refused with the file and line of its first mistake; what it rests on has checksums."""

import pytest

from hippo_core.files import LabError
from hippo_core.paired.doctor import examined
from hippo_core.paired.scaffold import new_suite
from hippo_core.paired.suite import read_suite
from tests.paired import suites


def test_a_new_suite_is_right_as_it_stands(tmp_path):
    suite = read_suite(new_suite(tmp_path / "mine"))
    assert {item.type for item in suite.items} == {"retrieval", "grounded_answer", "adversarial_stale", "resume_quality"}
    assert not [one for one in examined(suite) if one.level == "fail" and "items, the manifest" not in one.what]
    with pytest.raises(LabError, match="is there already"):
        new_suite(tmp_path / "mine")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            '{"id": "x", "type": "retrieval", "question": "?", "expected_notes": ["n9"], "world": "amber"}',
            "27: expected expected_notes",
        ),
        ('{"id": "x", "type": "retrieval", "question": "?", "world": "nowhere"}', "27: expected a world that has notes"),
        ('{"id": "x", "type": "riddle"}', "27: type: Input tag 'riddle'"),
        ('{"id": "x", "type": "retrieval", "question": "?", "world": "amber", "topk": 3}', "27: topk: Extra inputs"),
        ('{"id": "amber-r", "type": "retrieval", "question": "?", "world": "amber"}', "27: expected an id of its own"),
        ("{", "27: expected one JSON object"),
        ('{"id": "../x", "type": "retrieval", "question": "?"}', "27: id: String should match"),
        ('{"id": "x", "type": "command_task", "prompt": "p", "command": "c", "fixture": "../up"}', "without '..'"),
        (
            '{"id": "x", "type": "adversarial_stale", "question": "?", "world": "amber", "expect": "prefer_fresh"}',
            "expected fresh_assertions",
        ),
    ],
)
def test_a_mistake_is_said_with_its_line(tmp_path, line, says):
    folder = suites.write(tmp_path / "s")
    (folder / "items.jsonl").open("a").write(line + "\n")
    with pytest.raises(LabError) as error:
        read_suite(folder)
    assert says in str(error.value).removeprefix(f"{folder}/items.jsonl:") and "\n" not in str(error.value)


def test_checksums_follow_every_file_that_a_run_rests_on(tmp_path):
    folder = suites.write(tmp_path / "s")
    (folder / "scripts").mkdir()
    (folder / "scripts/score.sh").write_text("true\n")
    before = read_suite(folder).checksums
    for name, path in (("manifest", "suite.yaml"), ("items", "items.jsonl"), ("notes", "notes.jsonl"), ("scripts", "scripts/score.sh")):
        (folder / path).open("a").write("\n")
        after = read_suite(folder).checksums
        assert {one for one in after if after[one] != before[one]} == {name}
        before = after
    (folder / "scripts/score.sh").chmod(0o755)
    assert read_suite(folder).checksums["scripts"] != before["scripts"]


def test_a_link_in_a_suite_is_refused(tmp_path):
    folder = suites.write(tmp_path / "s")
    (folder / "fixtures").mkdir()
    (folder / "fixtures/out").symlink_to("/etc")
    with pytest.raises(LabError, match="is a link"):
        read_suite(folder).checksums  # noqa: B018


def test_the_doctor_sees_what_no_memory_could_answer(tmp_path):
    folder = suites.write(tmp_path / "s")
    (folder / "items.jsonl").open("a").write(
        '{"id": "x", "type": "grounded_answer", "world": "amber", "question": "?",'
        ' "expected_notes": ["n2"], "required_assertions": ["Olaf"]}\n'
        '{"id": "y", "type": "retrieval", "world": "amber", "question": "!"}\n'
    )
    said = [one.what for one in examined(read_suite(folder)) if one.level == "fail"]
    assert said[0] == "item x: the expected notes do not say 'Olaf'" and len(said) == 2
    assert said[1] == "item y: it expects no note, tag or file, so that nothing can be scored"

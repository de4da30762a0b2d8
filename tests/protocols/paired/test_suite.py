"""A suite is read as it was meant, or refused with the file and line of its first mistake; what it rests on has checksums. What a second
reader expects of it is compared with its labels."""

import json

import pytest
from typer.testing import CliRunner

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.protocols.paired.commands import app
from hippo_core.protocols.paired.items import ITEMS
from hippo_core.protocols.paired.lint import FILE, agreement, examined
from hippo_core.protocols.paired.suite import new_suite, read_suite
from tests.protocols.paired import suites


def test_a_new_suite_is_right_as_it_stands(tmp_path):
    suite = read_suite(new_suite(tmp_path / "mine"))
    assert {item.type for item in suite.items} == set(ITEMS)
    assert not [finding for finding in examined(suite) if finding.level == "fail"]
    for item in suite.shell:  # what they need came along
        assert (suite.folder / item.fixture / "service.json").is_file()
    assert (suite.folder / "scripts/fake_agent.py").is_file() and (suite.folder / "score/complete.py").is_file()
    with pytest.raises(LabError, match="is there already"):
        new_suite(tmp_path / "mine")


def test_a_suite_may_be_named_by_a_variable(tmp_path):
    folder = suites.write(tmp_path / "s")
    result = CliRunner().invoke(app, ["doctor"], env={"HIPPO_SUITE": str(folder)})
    assert result.exit_code == 0 and "26 items in 13 worlds" in result.output, result.output
    assert CliRunner().invoke(app, ["doctor"], env={"HIPPO_SUITE": str(tmp_path)}).exit_code


def test_a_path_is_from_the_current_folder_and_then_from_the_lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert new_suite("mine") == read_suite("mine").folder == tmp_path / "mine"
    assert not (root() / "mine").exists()
    assert read_suite("data/paired/everyday").folder == root() / "data/paired/everyday"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "x", "type": "retrieval", "question": "?", "expected_notes": ["n9"], "world": "amber"}', "27: expected expected_notes"),
        ('{"id": "x", "type": "retrieval", "question": "?", "world": "nowhere"}', "27: expected a world that has notes"),
        ('{"id": "x", "type": "riddle"}', "27: expected a type of item, got 'riddle'"),
        ('{"id": "x", "type": "retrieval", "question": "?", "world": "amber", "topk": 3}', "27: topk: unknown key; legal: "),
        ('{"id": "amber-r", "type": "retrieval", "question": "?", "world": "amber"}', "27: expected an id of its own"),
        ("{", "27: expected one JSON object"),
        ('{"id": "../x", "type": "retrieval", "question": "?"}', "27: id: String should match"),
        ('{"id": "x", "type": "command_task", "prompt": "p", "command": "c", "fixture": "../up"}', "without '..'"),
        ('{"id": "x", "type": "command_task", "prompt": "p", "command": "ls {condition}"}', "27: command: Value error, an agent may not"),
        (
            '{"id": "x", "type": "adversarial_stale", "question": "?", "world": "amber", "expect": "prefer_fresh"}',
            "expected fresh_assertions",
        ),
        (
            '{"id": "x", "type": "agent_build_sequence", "fixture": "f", "agent_command": "c",'
            ' "steps": [{"id": "a", "prompt": "p"}, {"id": "a", "prompt": "p"}]}',
            "two steps have the same id",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path, line, says):
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
        assert {part for part in after if after[part] != before[part]} == {name}
        before = after
    (folder / "scripts/score.sh").chmod(0o755)
    assert read_suite(folder).checksums["scripts"] != before["scripts"]


def test_the_lint_sees_what_no_memory_could_answer(tmp_path):
    folder = suites.write(tmp_path / "s")
    (folder / "items.jsonl").open("a").write(
        '{"id": "x", "type": "grounded_answer", "world": "amber", "question": "?",'
        ' "expected_notes": ["n2"], "required_assertions": ["Olaf"]}\n'
        '{"id": "y", "type": "retrieval", "world": "amber", "question": "!"}\n'
    )
    findings = [finding.what for finding in examined(read_suite(folder)) if finding.level == "fail"]
    assert findings[0] == "item x: the expected notes do not say 'Olaf'" and len(findings) == 2
    assert findings[1] == "item y: it expects no note, tag or file, so that nothing can be scored"


OUTSIDE = ["../../private", "a/../../private", "../human_notes/../../private", "a\0b"]


@pytest.mark.parametrize("world", OUTSIDE)
@pytest.mark.parametrize("file", ["notes.jsonl", "items.jsonl"])
def test_a_worlds_name_that_leads_out_of_the_suite_is_refused_with_its_line(world, file, tmp_path):
    folder = suites.write(tmp_path / "suite", worlds=["amber", "birch"])
    (tmp_path / "private.md").write_text("gold")
    values = [json.loads(line) for line in (folder / file).read_text().splitlines()]
    values[1]["world"] = world
    (folder / file).write_text("\n".join(map(json.dumps, values)) + "\n")
    with pytest.raises(LabError, match=rf"{file}:2: world: .*expected a world's name without '\.\.'"):
        read_suite(folder)


@pytest.mark.parametrize("field", ["items", "notes", "scripts"])
@pytest.mark.parametrize("name", ["../private.md", "/etc/passwd", "human_notes/../../private.md", "a\0b"])
def test_a_file_that_a_manifest_names_lies_in_the_suite(field, name, tmp_path):
    folder = suites.write(tmp_path / "suite", worlds=["amber"])
    (tmp_path / "private.md").write_text("{}")
    with (folder / "suite.yaml").open("a") as manifest:
        manifest.write(f"{field}: {json.dumps([name] if field == 'scripts' else name)}\n")
    with pytest.raises(LabError, match="expected a path within the suite") as error:
        read_suite(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["suite.yaml", "items.jsonl", "notes.jsonl", "human_notes", "human_notes/amber.md", "score", "fixtures", "fixtures/out"]
)
def test_a_link_at_a_name_of_the_suite_is_refused(name, tmp_path):
    folder = suites.write(tmp_path / "suite", worlds=["amber"])
    path = folder / name
    if path.exists():
        path.rename(tmp_path / "moved")
    else:
        (tmp_path / "moved").mkdir()
        path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(LabError, match="link"):
        read_suite(folder)


def test_a_world_without_a_human_note_has_an_empty_one_and_a_damaged_one_is_reported(tmp_path):
    suite = read_suite(suites.write(tmp_path / "suite", worlds=["amber"]))
    assert suite.human_note("amber") and [suite.human_note(world) for world in ("birch", "x" * 300, "a/b", "...")] == [""] * 4
    with pytest.raises(LabError, match="expected a path within the suite"):
        suite.human_note("../../private")
    (suite.folder / "human_notes" / "amber.md").write_bytes(b"\xff")
    with pytest.raises(LabError, match="not UTF-8"):
        suite.human_note("amber")


def read_twice(folder, **others):
    """The suite with a second reading that agrees with it but for `others`."""
    suite = read_suite(suites.write(folder))
    lines = [{"id": item.id, "notes": ["n1"], "answer": f"It hangs on shelf {item.world}."} for item in suite.items]
    lines = [line | others.get(line["id"].replace("-", "_"), {}) for line in lines]
    (folder / FILE).write_text("# with the labels hidden\n" + "\n".join(map(json.dumps, lines)) + "\n")
    return suite


def test_readers_that_agree(tmp_path):
    suite = read_twice(tmp_path / "s")
    result = agreement(suite)
    assert (result.items, result.notes.mean, result.notes.n, result.other_notes, result.other_answers) == (26, 1.0, 78, (), ())
    assert not [finding for finding in examined(suite) if "second reading" in finding.what]


def test_other_notes_and_answers_are_named(tmp_path):
    others = {"amber_r": {"notes": ["n1", "n2"]}, "birch_g": {"answer": "not on shelf birch"}, "dune_r": {"stale_notes": ["n3"]}}
    result = agreement(suite := read_twice(tmp_path / "s", **others))
    assert result.other_notes == ("amber-r", "dune-r") and result.other_answers == ("birch-g",)
    assert 0.9 < result.notes.low <= result.notes.mean < result.notes.high == 1.0 and result.notes.n_worlds == 13
    notes, answers = [finding.what for finding in examined(suite) if "second reading" in finding.what]
    assert notes.endswith("2 rest on other notes: amber-r, dune-r") and answers.endswith("1 have an answer that counts as wrong: birch-g")


def test_what_was_not_read_is_reported(tmp_path):
    suite = read_twice(tmp_path / "s")
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
def test_a_mistake_in_a_second_reading_is_reported_with_its_line(tmp_path, line, says):
    suite = read_twice(tmp_path / "s")
    (suite.folder / FILE).open("a").write(line + "\n")
    with pytest.raises(LabError) as error:
        agreement(suite)
    assert says in str(error.value)


def test_the_complete_shipped_suite_was_read_a_second_time():
    suite = read_suite("data/paired/everyday")
    result = agreement(suite)
    assert suite.manifest.label_status == "reviewed" and result.items == len(suite.items)
    assert result.notes.mean > 0.9 and len(result.other_notes) == 3 and len(result.other_answers) == 13  # listed in its README

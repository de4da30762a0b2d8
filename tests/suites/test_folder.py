"""A suite of the user's own: a good folder is read whole, and every mistake is one line that names the file and the line."""

import json

import pytest

from hippo_core.files import LabError
from hippo_core.suites import get_suite, settings_for
from hippo_core.suites.datasets.build import load_dataset, worlds
from hippo_core.suites.folder import read_folder

FACTS = [
    {"id": "f1", "world": "w1", "text": "Ada keeps the key in the blue jar."},
    {"id": "f2", "world": "w1", "text": "Ben keeps the map in the red box."},
    {"id": "g1", "world": "w2", "text": "The bakery opens at seven."},
]
ITEMS = [
    {"id": "q1", "world": "w1", "question": "Where is the key?", "answers": ["the blue jar", "blue jar"], "gold_facts": ["f1"]},
    {"id": "q2", "world": "w2", "question": "When does the bakery open?", "answers": ["seven"], "gold_facts": ["g1"], "kind": "when"},
    {"id": "q3", "world": "w1", "question": "Where is the map?", "answers": ["the red box"], "gold_facts": ["f2"], "rung": "partial"},
]


def lines(values):
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.fixture
def folder(tmp_path):
    own = tmp_path / "My suite"
    own.mkdir()
    (own / "facts.jsonl").write_text(lines(FACTS), encoding="utf-8")
    (own / "items.jsonl").write_text(lines(ITEMS), encoding="utf-8")
    return own


def test_the_least_fields_are_enough(folder):
    first, second = read_folder(folder)
    assert [fact.id for fact in first.facts] == ["f1", "f2"]
    assert [item.id for item in first.items] == ["q1", "q3"]
    assert first.items[0].window == first.items[0].taught == ("f1", "f2")
    assert [item.distance for item in first.items] == [1, 0]
    assert second.items[0].kind == "when"
    assert [fact.time for fact in first.facts] == [0, 1]


def test_an_own_suite_works_like_any_other(folder):
    name = f"folder:{folder}"
    assert get_suite(name).name.startswith("folder-my-suite-")
    assert list(worlds(name, "default", 50, 1, "test")) == read_folder(folder)
    assert sum(len(world.items) for world in worlds(name, "default", 2, 1, "test")) == 2
    with pytest.raises(LabError, match="n_items"):
        settings_for(name, "default", {"n_items": 3})
    with pytest.raises(LabError, match="legal: default"):
        settings_for(name, "hard")


def test_val_comes_from_a_subfolder(folder):
    with pytest.raises(LabError, match="has no val split"):
        read_folder(folder, "val")
    (folder / "val").mkdir()
    (folder / "val/facts.jsonl").write_text(lines(FACTS[2:]), encoding="utf-8")
    (folder / "val/items.jsonl").write_text(lines(ITEMS[1:2]), encoding="utf-8")
    assert [world.id for world in read_folder(folder, "val")] == ["w2"]


def test_a_changed_folder_is_read_anew(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    assert len(load_dataset(f"folder:{folder}", n=50)) == 2
    (folder / "items.jsonl").write_text(lines(ITEMS[:1]), encoding="utf-8")
    assert len(load_dataset(f"folder:{folder}", n=50)) == 1


def without(value, key):
    return {name: part for name, part in value.items() if name != key}


MISTAKES = {
    "missing field": ("facts", [FACTS[0], without(FACTS[1], "text")], r"facts\.jsonl:2: expected a field 'text'"),
    "unknown field": ("items", [{**ITEMS[0], "anwsers": ["x"]}], r"items\.jsonl:1: expected known fields, got 'anwsers'; legal: id, world"),
    "wrong type": ("items", [{**ITEMS[0], "hops": "two"}], r"items\.jsonl:1: expected hops to be a whole number, got \"two\""),
    "a flag as a number": ("facts", [{**FACTS[0], "pin": 1}], r"facts\.jsonl:1: expected pin to be true or false, got 1"),
    "answers as a string": ("items", [{**ITEMS[0], "answers": "x"}], r":1: expected answers to be a list of at least one string"),
    "no answer": ("items", [{**ITEMS[0], "answers": []}], r":1: expected answers to be a list of at least one string"),
    "empty answer": ("items", [ITEMS[1], {**ITEMS[0], "answers": [" "]}], r"items\.jsonl:2: expected answers .*none empty"),
    "unknown world": ("items", [{**ITEMS[0], "world": "w9"}], r":1: expected a world that facts\.jsonl has, got 'w9'; .*w1, w2"),
    "unknown fact": ("items", [{**ITEMS[0], "gold_facts": ["f9"]}], r":1: expected gold_facts with ids of facts of world 'w1', got 'f9'"),
    "fact of another world": ("items", [{**ITEMS[0], "gold_facts": ["g1"]}], r":1: expected gold_facts with ids .*got 'g1'"),
    "gold not taught": ("items", [{**ITEMS[0], "taught": ["f2"]}], r":1: expected gold_facts among the taught facts, got 'f1'"),
    "window not taught": (
        "items",
        [{**ITEMS[0], "taught": ["f1"], "window": ["f2"]}],
        r":1: expected window among the taught facts, got 'f2'",
    ),
    "same id twice": ("facts", [*FACTS, FACTS[0]], r"facts\.jsonl:4: expected an id of its own, got 'f1'; line 1 has it already"),
    "no line": ("facts", [], r"facts\.jsonl:1: expected at least one line, got none"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line(folder, name):
    which, values, message = MISTAKES[name]
    (folder / f"{which}.jsonl").write_text(lines(values), encoding="utf-8")
    with pytest.raises(LabError, match=message) as caught:
        read_folder(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": "f1", "world": "w1", "text": "caf\xe9"}\n', r"facts\.jsonl:1: expected UTF-8 text, got byte 0xe9 at column 41"),
        (b'{"id": "f1", "world": "w1", "text": "a"}\n{"id": \n', r"facts\.jsonl:2: expected one JSON object, got Expecting value"),
        (b'["f1"]\n', r"facts\.jsonl:1: expected one JSON object, got list"),
    ],
)
def test_files_that_are_no_json_lines_are_refused(folder, content, message):
    (folder / "facts.jsonl").write_bytes(content)
    with pytest.raises(LabError, match=message):
        read_folder(folder)


def test_missing_files_and_folders_say_what_is_expected(folder):
    (folder / "items.jsonl").unlink()
    with pytest.raises(LabError, match=r"no such file: .*items\.jsonl"):
        read_folder(folder)
    with pytest.raises(LabError, match=r"no such folder: .*facts\.jsonl and items\.jsonl"):
        get_suite(f"folder:{folder / 'nowhere'}")

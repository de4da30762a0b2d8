"""A suite of the user's own: a good folder is read fully, and every mistake is one line that names file and line."""

import json
import re

import pytest

from hippo_core import lab
from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.lab.cli import cell_commands
from hippo_core.lab.grid import summary
from hippo_core.lab.run import fingerprints, notebook_files
from hippo_core.lab.run.cells import cells_of
from hippo_core.lab.run.cells import command as command_of
from hippo_core.lab.run.execute import Outcome
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.protocols.base.qa import parameters
from hippo_core.results.records import read_meta
from hippo_core.suites import get_suite, settings_for
from hippo_core.suites.datasets.build import dataset_folder, load_dataset
from hippo_core.suites.datasets.validate import rules
from hippo_core.suites.draw import worlds
from hippo_core.suites.folder import count_questions, cut_short, read_folder, require_folder
from hippo_core.suites.folder.lines import FACT_FIELDS, ITEM_FIELDS

README = (root() / "docs/own.md").read_text(encoding="utf-8").split("### Your own facts")[1].split("\n## ")[0]
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
    return write(own, FACTS, ITEMS)


def write(path, facts, items):
    """The two files of a split."""
    path.mkdir(exist_ok=True)
    (path / "facts.jsonl").write_text(lines(facts), encoding="utf-8")
    (path / "items.jsonl").write_text(lines(items), encoding="utf-8")
    return path


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
    write(folder / "val", FACTS[2:], ITEMS[1:2])
    assert [world.id for world in read_folder(folder, "val")] == ["w2"]


def test_a_changed_folder_is_read_anew(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    assert len(load_dataset(f"folder:{folder}", n=50)) == 2
    (folder / "items.jsonl").write_text(lines(ITEMS[:1]), encoding="utf-8")
    assert len(load_dataset(f"folder:{folder}", n=50)) == 1


def test_lists_are_in_order_of_time_however_they_are_written(folder):
    facts = [{**FACTS[0], "time": 5}, {**FACTS[1], "time": 2}, FACTS[2]]
    write(folder, facts, [{**ITEMS[0], "window": ["f1", "f2"], "taught": ["f1", "f2"]}, {**ITEMS[2], "window": []}])
    [first, second] = read_folder(folder)[0].items
    assert first.window == first.taught == second.taught == ("f2", "f1")
    assert first.distance == second.distance == 0
    assert second.window == ()


def test_what_all_items_share_is_written_and_stored_once(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    name = f"folder:{folder}"
    write(folder, FACTS, [*ITEMS, {**ITEMS[0], "id": "q4", "window": ["f1"]}, {**ITEMS[0], "id": "q5", "taught": ["f2", "f1"]}])
    [home, _] = read = load_dataset(name, n=50)
    assert read == read_folder(folder)
    assert len({id(ids) for item in home.items for ids in (item.window, item.taught)}) == 2
    written = [json.loads(line) for line in (dataset_folder(name, "default", 50, 1337) / "test/items.jsonl").open()]
    assert [
        (values["id"], values.get("window"), values.get("taught")) for values in written if "window" in values or "taught" in values
    ] == [("q4", ["f1"], None)]


def test_marks_and_line_ends_of_other_editors_are_fine(folder):
    read = read_folder(folder)
    for name in ("facts", "items"):
        path = folder / f"{name}.jsonl"
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n").rstrip())
    assert read_folder(folder) == read


def test_ids_may_have_any_characters(folder):
    facts = [{**fact, "id": f"../{fact['id']};", "world": "a/b"} for fact in FACTS]
    write(folder, facts, [{**ITEMS[0], "id": "/q", "world": "a/b", "gold_facts": ["../f1;"]}])
    [world] = read_folder(folder)
    assert (world.id, world.items[0].id, world.items[0].gold_facts) == ("a/b", "/q", ("../f1;",))


def test_all_questions_of_a_folder_are_counted(folder):
    name = f"folder:{folder}"
    assert count_questions(name, "test") == 3
    assert cut_short(name, "test", 3) == ""
    assert cut_short(name, "test", 2) == f"2 of the 3 questions of {name} are asked (n=2); n=all asks all of them"
    assert load_experiment("answer").check({"suite": name, "n": "all"}, "run answer").n == 3
    with pytest.raises(LabError, match=r"n=all is for folder:PATH.*give suite spatial a number"):
        load_experiment("answer").check({"suite": "spatial", "n": "all"}, "run answer")


ROUTE = " ".join(["north", "east"] * 20)  # 40 words


def test_the_answer_budget_is_32_tokens_or_as_many_as_are_set(folder):
    def budget(**settings):
        return parameters.resolve(parameters.AskingParameters(suite=f"folder:{folder}", **settings)).suite.answer_budget

    assert get_suite(f"folder:{folder}").answer_budget == budget() == 32
    assert budget(overrides=["answer_tokens=48"]) == 48
    assert budget(overrides=["answer_tokens=48"], max_new_tokens=64) == 64
    with pytest.raises(LabError, match=r"answer_tokens.*greater than or equal to 1.*got 0"):
        budget(overrides=["answer_tokens=0"])


@pytest.mark.parametrize(
    ("answers", "tokens", "named"),
    [
        ([ROUTE], 32, True),
        (["the blue jar", ROUTE], 32, True),  # an accepted spelling that is not the first
        (["the blue jar"], 2, True),
        ([ROUTE], 40, False),
        (["a-word-of-many-tokens " * 32], 32, False),  # in words it has room; the model's tokens decide later
    ],
)
def test_an_accepted_answer_over_the_budget_is_named_when_the_folder_is_read(folder, tmp_path, monkeypatch, answers, tokens, named):
    (tmp_path / "params").symlink_to(root() / "params")
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    write(folder, FACTS, [{**ITEMS[0], "answers": answers}, ITEMS[1]])
    values = {"suite": f"folder:{folder}", "model": "hippo-tiny", "n": "all", "overrides": [f"answer_tokens={tokens}"]}
    experiment = load_experiment("answer")
    cell = experiment.cell(experiment.check(values, "run answer"), tmp_path / "record", 0.0)
    cell.begun()
    assert [
        f"longer than the {tokens} new tokens of an answer" in warning and f"q1 ({answers[-1]!r})" in warning for warning in cell.warnings
    ] == [True] * named


def test_a_gate_needs_validation_worlds_and_nothing_else_does(folder):
    name = f"folder:{folder}"
    gated = {"suite": name, "preset": "memory/hei_nw_gated", "n": "all"}
    with pytest.raises(LabError, match=r"gate is calibrated on validation worlds.*has none; put .* into .*val, or say .*use_gate=false"):
        load_experiment("memory").check(gated, "run memory")
    for words in ({"overrides": ["episodic.use_gate=false"]}, {"preset": "ablations/gate_random"}, {"preset": "controls/shuffled_store"}):
        load_experiment("memory").check({**gated, **words}, "run memory")
    write(folder / "val", FACTS[2:], ITEMS[1:2])
    load_experiment("memory").check(gated, "run memory")


def test_a_folder_with_a_single_world_cannot_be_shuffled(folder):
    require_folder(f"folder:{folder}", "test", 3, shuffles=True)
    with pytest.raises(LabError, match=r"the first 2 questions of .* are about one world; take a larger n"):
        require_folder(f"folder:{folder}", "test", 2, shuffles=True)
    write(folder, FACTS, ITEMS[:1])
    with pytest.raises(LabError, match=r"about one world; split the facts into worlds"):
        require_folder(f"folder:{folder}", "test", 50, shuffles=True)


def test_mistakes_in_validation_worlds_are_reported_too(folder):
    write(folder / "val", FACTS[2:], ITEMS[:1])
    with pytest.raises(LabError, match=r"val/items\.jsonl:1: expected a world that facts\.jsonl has, got 'w1'"):
        require_folder(f"folder:{folder}", "test", 50)


def test_a_mended_folder_is_read_anew(folder):
    write(folder, FACTS, ITEMS[:1])
    require_folder(f"folder:{folder}", "test", 50)
    write(folder, FACTS[1:], ITEMS[:1])
    with pytest.raises(LabError, match="got 'f1'"):
        require_folder(f"folder:{folder}", "test", 50)


def without(value, key):
    return {name: part for name, part in value.items() if name != key}


START = b'{"id": "f1", "world": "w1", "text": '
MISTAKES = {
    "missing field": ("facts", [FACTS[0], without(FACTS[1], "text")], r"facts\.jsonl:2: expected a field 'text'"),
    "unknown field": ("items", [{**ITEMS[0], "anwsers": ["x"]}], r"items\.jsonl:1: expected known fields, got 'anwsers'; legal: id, world"),
    "wrong type": ("items", [{**ITEMS[0], "hops": "two"}], r"items\.jsonl:1: expected hops to be a whole number, 1 or more, got \"two\""),
    "too large a number": ("facts", [{**FACTS[0], "time": 2**63}], r":1: expected time to be a whole number of 64 bits, got 9223"),
    "no number": ("items", [{**ITEMS[0], "chance": float("nan")}], r":1: expected chance to be a number from 0 to 1, got NaN"),
    "an empty rung": ("items", [{**ITEMS[0], "rung": ""}], r":1: expected rung to be a string that is not empty"),
    "a long fact": ("facts", [{**FACTS[0], "text": "word " * 5000}], r":1: expected text .* 20,000 .*\(25,000 characters\)"),
    "retold by a stranger": ("items", [{**ITEMS[0], "retold": {"f9": "f1"}}], r":1: expected retold with ids of facts .*got 'f9'"),
    "gold twice": ("items", [{**ITEMS[0], "gold_facts": ["f1", "f1"]}], r":1: expected gold_facts to be a list .*none twice"),
    "a name that separates": ("items", [{**ITEMS[0], "slices": ["a;b"]}], r":1: expected slices to be a list of strings without ';'"),
    "unknown fact in the window": ("items", [{**ITEMS[0], "window": ["f9"]}], r":1: expected window with ids of facts .*got 'f9'"),
    "same id in another world": ("facts", [*FACTS, {**FACTS[0], "world": "w2"}], r":4: expected an id of its own, got 'f1'; line 1 has it"),
    "a flag as a number": ("facts", [{**FACTS[0], "pin": 1}], r"facts\.jsonl:1: expected pin to be true or false, got 1"),
    "no answer": ("items", [{**ITEMS[0], "answers": []}], r":1: expected answers to be a list of at least one string"),
    "empty answer": ("items", [ITEMS[1], {**ITEMS[0], "answers": [" "]}], r"items\.jsonl:2: expected answers .*none empty"),
    "unknown world": ("items", [{**ITEMS[0], "world": "w9"}], r":1: expected a world that facts\.jsonl has, got 'w9'; .*w1, w2"),
    "unknown fact": ("items", [{**ITEMS[0], "gold_facts": ["f9"]}], r":1: expected gold_facts with ids of facts of world 'w1', got 'f9'"),
    "gold not taught": ("items", [{**ITEMS[0], "taught": ["f2"]}], r":1: expected gold_facts among the taught facts, got 'f1'"),
    "window not taught": ("items", [{**ITEMS[0], "taught": ["f1"], "window": ["f2"]}], r":1: expected window among .*, got 'f2'"),
    "no line": ("facts", [], r"facts\.jsonl:1: expected at least one line, got none"),
    "no UTF-8": ("facts", START + b'"caf\xe9"}\n', r"facts\.jsonl:1: expected UTF-8 text, got byte 0xe9 at column 41"),
    "half a line": ("facts", START + b'"a"}\n{"id": \n', r"facts\.jsonl:2: expected one JSON object, got Expecting value"),
    "a list": ("facts", b'["f1"]\n', r"facts\.jsonl:1: expected one JSON object, got list"),
    "a field twice": ("facts", START + b'"a", "text": "b"}\n', r":1: expected one JSON object, got the key 'text' twice"),
    "a slot twice": ("facts", START + b'"a", "slots": {"a": "b", "a": "c"}}\n', r":1: expected .*, got the key 'a' twice"),
    "half a character": ("facts", START + b'"\\ud800"}\n', r":1: expected whole characters, got '\\ud800'"),
    "nested too deep": ("facts", b'{"id": ' + b"[" * 100_000, r":1: expected one JSON object, got one that is nested too deep"),
    "too many digits": ("facts", b'{"time": ' + b"9" * 5000 + b"}", r":1: expected one JSON object, got Exceeds the limit"),
    "UTF-16": ("facts", "{}".encode("utf-16"), r":1: expected UTF-8 text, got byte 0xff at column 1"),
    "an empty line": ("facts", b"\xef\xbb\xbf\r\n", r":1: expected at least one line, got none"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line(folder, name):
    which, content, message = MISTAKES[name]
    (folder / f"{which}.jsonl").write_bytes(content if isinstance(content, bytes) else lines(content).encode())
    with pytest.raises(LabError, match=message) as caught:
        read_folder(folder)
    assert "\n" not in str(caught.value)


def test_errors_for_missing_files_name_what_is_expected(folder):
    (folder / "items.jsonl").unlink()
    with pytest.raises(LabError, match=r"no such file: .*items\.jsonl"):
        read_folder(folder)
    with pytest.raises(LabError, match=r"no such folder: .*facts\.jsonl and items\.jsonl"):
        get_suite(f"folder:{folder / 'nowhere'}")
    (folder / "items.jsonl").mkdir()
    with pytest.raises(LabError, match=r"items\.jsonl is no file; a suite of your own is a folder with facts\.jsonl"):
        require_folder(f"folder:{folder}", "test", 50)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The README's example as a folder, and a root of its own for what runs write, with the repository's code linked into it."""
    lab_root = tmp_path_factory.mktemp("lab")
    for name in ("hippo_core", "params", "notebooks", "requirements.lock", "data/samples", "data/weights"):
        (lab_root / name).parent.mkdir(exist_ok=True)
        (lab_root / name).symlink_to(root() / name)
    facts, items = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    write(lab_root / "own", (), ())
    (lab_root / "own/facts.jsonl").write_text(facts, encoding="utf-8")
    (lab_root / "own/items.jsonl").write_text(items, encoding="utf-8")
    fingerprints.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIPPO_ROOT", str(lab_root))
        yield lab_root / "own"
    fingerprints.forget()
    parameters.forget()


def test_the_example_is_complete_and_keeps_the_rules(example):
    assert rules(read_folder(example), get_suite(f"folder:{example}"), 0) == []
    for fields in (FACT_FIELDS, ITEM_FIELDS):
        assert [name for name in fields if f"`{name}`" not in README] == []


def notebook(**values):
    """What the cells of the memory's notebook leave, but for the figure: its own names."""
    path = notebook_files.notebook_path("03_memory")
    space = {**notebook_files.defaults(path), **values}
    for source in notebook_files.code(path)[:-1]:
        exec(source, space)
    return space


def test_a_memory_is_asked_without_validation_worlds(example):
    """The example, with one more fact, too long for any prompt, and one question fewer."""
    long = {"id": "b3", "world": "town", "text": "The tower opens at nine" + ", and at nine" * 400 + "."}
    with (example / "facts.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(long) + "\n")
    values = {"suite": f"folder:{example}", "n": 2}
    taught = notebook(**values, step="teach")
    assert dict(zip(taught["rows"]["fact_id"], taught["rows"]["action"], strict=True)) == {"f1": "insert", "f2": "insert", "f3": "insert"}
    everything = {**values, "n": 3, "run_id": "all"}
    actions = notebook(**everything, step="teach")["rows"].set_index("fact_id")["action"]
    assert actions["b3"] == "refuse" and set(actions.drop("b3")) == {"insert"}
    asked, rest = notebook(**values), notebook(**everything)
    assert "right fact found 2 of 2, answered 0 of 2" in lab.sentence(asked["cell"], asked["metrics"])
    shown = lab.preview(rest["rows"])
    assert list(shown)[:4] == ["question", "recalled (score)", "given", "right answer"]
    assert re.fullmatch(r"Ada moved the key to the drawer\. \(-?[\d.e-]+\)", shown["recalled (score)"].iloc[0])
    assert asked["rows"]["item_id"].tolist() == ["q1", "q2"] and rest["rows"]["recall_1"].iloc[2] == 1
    cut, of_long = (summary.warnings([Outcome(space["cell"], "done", 0.0)]) for space in (asked, rest))
    assert cut == [f"warning: {cut_short(values['suite'], 'test', 2)}"]
    assert len(of_long) == 1 and "1 of 6 facts are too long for the 512 tokens of hippo-tiny" in of_long[0]
    assert "warnings" in read_meta(asked["cell"].record)


def test_a_grid_and_a_command_choose_the_model_of_a_folder(example, monkeypatch):
    own = f"folder:{example}"
    answer = load_experiment("answer")

    def models(**axes: str) -> dict[str, str]:
        settings = [{"suite": suite, "preset": "baselines/rag_bm25", **axes} for suite in ("episodic", own)]
        return {variant.suite: variant.model for row in settings for variant in answer.variants(answer, row, "here")}

    assert parameters.usual_model(own) == "hippo-tiny" and "`make models` brings one that can" in parameters.with_model({"suite": own})[1]
    there = example.parent / "data/models/smollm2-135m"  # where the reader's files are looked for
    there.mkdir(parents=True)
    try:
        assert parameters.usual_model(own) == "smollm2-135m-reader" and "everyday sentences" in parameters.with_model({"suite": own})[1]
        assert parameters.usual_model("episodic") == "hippo-tiny" and not parameters.with_model({"suite": "episodic"})[1]
        assert models() == {"episodic": "hippo-tiny", own: "smollm2-135m-reader"}
        assert models(model="hippo-tiny") == {"episodic": "hippo-tiny", own: "hippo-tiny"}
        seen = []
        monkeypatch.setattr(cell_commands, "is_complete", lambda record: True)
        monkeypatch.setattr(cell_commands, "cells_of", lambda plan: seen.append(plan.parameters["model"]) or cells_of(plan))
        for words in ([], ["model=hippo-tiny"]):
            assert cell_commands.run_single("answer", [f"suite={own}", "preset=baselines/rag_bm25", *words], False) == 0
        assert seen == ["smollm2-135m-reader", "hippo-tiny"]
    finally:
        there.rmdir()
    memory = load_experiment("memory")
    values = memory.check({"suite": own, "model": "hippo-tiny", "preset": "memory/hei_nw"}, "here")
    assert "model=hippo-tiny" in command_of(cells_of(memory.plan(values))[-1])

"""Files of dialogues: the specification's names and our own, and every mistake with file and line."""

import json
import math

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import read, reworded
from hippo_core.protocols.conversation.scores import scored

SPECIFIED = """{"id": "a",
 "turns": [
  {"role": "user", "content": "My name is Ann.",
   "metadata": {"containsKeyInfo": true, "keyInfoType": "identity", "salienceLevel": "high"}},
  {"role": "assistant", "content": "I take the bus."}
 ],
 "recallQuestions": [
  {"question": "Who?", "expectedAnswer": "Ann", "expectedEntities": ["Ann"],
   "infoLocation": "early", "salienceLevel": "high"}
 ]}
"""


def written(folder, text=SPECIFIED, name="a.json"):
    path = folder / name
    path.write_text(text)
    return path


def test_the_names_of_the_specification_are_read(tmp_path):
    [dialogue] = read(written(tmp_path))
    [question] = dialogue.questions
    assert [turn.line for turn in dialogue.turns] == ["user: My name is Ann.", "assistant: I take the bus."]
    assert (dialogue.turns[0].key, dialogue.turns[0].salience, [turn.id for turn in dialogue.turns]) == ("identity", "high", ["0", "1"])
    assert (question.answer, question.entities, question.position) == ("Ann", ("Ann",), "early")


def test_a_folder_a_list_and_lines_are_read_and_written_dialogues_come_back(tmp_path):
    [dialogue] = read(written(tmp_path))
    others = [dialogue.model_copy(update={"id": name}) for name in ("b", "c")]
    (tmp_path / "b.jsonl").write_text("".join(other.model_dump_json(exclude_defaults=True) + "\n" for other in others))
    assert [dialogue.id for dialogue in read(tmp_path)] == ["a", "b", "c"]
    assert read(tmp_path / "b.jsonl")[0].turns == dialogue.turns
    listed = written(tmp_path, json.dumps([json.loads(SPECIFIED)]), "c.json")
    assert read(listed) == (dialogue,)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('"role": "assistant", ', "", 5, "speaker"),
        ('"I take the bus."', '""', 5, "at least 1 character"),
        ('"expectedAnswer": "Ann"', '"expectedAnswer": " "', 8, "an answer is expected"),
        ('{"role": "assistant",', '{"role": "assistant", "id": "0",', 3, "two turns"),
        ('"question": "Who?",', '"question": "Who?", "evidence": ["7"],', 8, "'7' is the id of no turn"),
        ('"infoLocation": "early"', '"infoLocation": "soon"', 9, "'early', 'middle' or 'recent'"),
        ('"question": "Who?",', '"question": "Who?", "mood": 1,', 8, "mood"),
        ('"id": "a",', '"id": "a"', 2, "expected JSON"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(tmp_path, old, new, line, says):
    assert old in SPECIFIED
    path = written(tmp_path, SPECIFIED.replace(old, new, 1))
    with pytest.raises(LabError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:{line}: ") and says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [('{"id": "a", "id": "b"}', "the key 'id' twice"), ("[" * 100_000, "recursion"), ('{"id": ' + "1" * 5000 + "}", "5000 digits")],
    ids=["twice", "cut", "digits"],
)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_that_python_reads_otherwise_or_not_is_one_line(tmp_path, text, says, name):
    with pytest.raises(LabError, match=says) as error:
        read(written(tmp_path, text, name))
    assert str(error.value).startswith(f"{tmp_path / name}:1")


def test_a_line_of_a_file_ends_at_a_line_feed_alone(tmp_path):
    text = json.dumps({"id": "a", "turns": [{"speaker": "Ann", "text": "One\u2028two\u0085three."}]}, ensure_ascii=False)
    assert len(read(written(tmp_path, f"{text}\r\n\n", "a.jsonl"))[0].turns) == 1


def test_in_lines_the_line_of_the_file_is_reported(tmp_path):
    good = json.dumps(json.loads(SPECIFIED))
    path = written(tmp_path, good + "\n\n" + good.replace('"role": "user", ', "") + "\n", "a.jsonl")
    with pytest.raises(LabError, match=f"{path}:3: turns.0.speaker"):
        read(path)


def test_ids_overlap_across_files_too(tmp_path):
    written(tmp_path)
    other = written(tmp_path, name="b.json")
    with pytest.raises(LabError, match=f"{other}:1: the id 'a'"):
        read(tmp_path)


def test_an_answer_in_other_words_is_read_counted_and_scored(tmp_path):
    [told] = read(written(tmp_path))
    [dialogue] = read(written(tmp_path, SPECIFIED.replace('"expectedAnswer": "Ann"', '"expectedAnswer": "her name is Ann"')))
    assert reworded([told]) == "" and reworded([told, dialogue]).startswith("1 of 2 answers occur in no turn")
    row = {"ranking": None, "text": "The name is Ann Lee.", "lines": ["user: My name is Ann."], "places": [0], "error": None}
    row |= {"tokens_in": 9, "select_ms": 0.0, "seconds": 0.0}
    scores = scored(row, dialogue, dialogue.questions[0], ("Ann",))
    assert (scores["em"], scores["contains"], scores["overlap"], scores["entity_recall"]) == (0, 0, 0.75, 1)  # 3 words of 4 and of 4
    assert math.isnan(scores["presence"])  # no prompt could hold it
    assert scored(row, told, told.questions[0], ("Ann",))["presence"] == 1


def test_nothing_to_read_is_reported(tmp_path):
    for path in (tmp_path / "no.json", tmp_path):
        with pytest.raises(LabError, match="dialogues"):
            read(path)

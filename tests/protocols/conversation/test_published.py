"""Published conversations are read whole, by path: sessions, dates, evidence, categories; what contradicts itself is refused."""

import json
from collections import Counter

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.published import read_published
from hippo_core.text_files import path_of
from tests.texts import needs

KILN = {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a kiln."}
BOWL = {"speaker": "Bob", "dia_id": "D1:2", "text": "", "blip_caption": "a blue bowl"}
LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "session_2_date_time": "9 May", "session_10_date_time": "3 June", "session_1_date_time": "8 May",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "I sold the kiln."}],
        "session_1": [KILN, BOWL],
        "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "I swim."}],
        "session_3_date_time": "no session of that date",
    },
    "qa": [
        {"question": "What did Ann buy and sell?", "answer": "a kiln", "evidence": ["D1:1; D10:1"], "category": 1},
        {"question": "When did Ann buy it?", "answer": 2023, "evidence": ["D1:2", "D9:9"], "category": 2},
        {"question": "Where does Ann swim?", "adversarial_answer": "sea", "evidence": ["D2:1"], "category": 5},
        {"question": "Does Bob like water?", "answer": "likely", "evidence": [], "category": 3},
    ],
}  # fmt: skip
HELLO = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
LONG = {
    "question_id": "q7", "question_type": "multi-session", "question": "What do I grow?", "answer": "beans",
    "haystack_session_ids": ["a", "a"], "haystack_dates": ["2023/05/20", "2023/05/21"],
    "haystack_sessions": [HELLO, [{"role": "user", "content": "I grow beans.", "has_answer": True}]],
}  # fmt: skip


@pytest.fixture
def written(tmp_path):
    def write(values):
        (tmp_path / "file.json").write_text(json.dumps(values))
        return tmp_path / "file.json"

    return write


def test_locomo_is_read_in_the_order_of_its_sessions(written):
    [dialogue] = read_published(written([LOCOMO]))
    assert [turn.id for turn in dialogue.turns] == ["D1:1", "D1:2", "D2:1", "D10:1"]
    assert [turn.date for turn in dialogue.turns] == ["8 May", "8 May", "9 May", "3 June"]
    assert dialogue.turns[1].line == "Bob: [shows a picture: a blue bowl]"
    assert [question.evidence for question in dialogue.questions] == [("D1:1", "D10:1"), ("D1:2",), ("D2:1",), ()]
    assert [question.kind for question in dialogue.questions] == ["multi-hop", "temporal", "adversarial", "open-domain"]
    assert [(question.answer, question.answerable) for question in dialogue.questions[1:3]] == [("2023", True), ("unknown", False)]


def test_longmemeval_has_a_history_a_question(written):
    absent = {**LONG, "question_id": "q8_abs", "answer": "not said"}
    first, second = read_published(written([LONG, absent]))
    assert [(turn.id, turn.date, turn.speaker) for turn in first.turns] == [
        ("0.a:0", "2023/05/20", "user"), ("0.a:1", "2023/05/20", "assistant"), ("1.a:0", "2023/05/21", "user")]  # fmt: skip
    [question] = first.questions
    assert (question.evidence, question.kind, question.answer, question.answerable) == (("1.a:0",), "multi-session", "beans", True)
    assert (second.questions[0].answerable, second.questions[0].kind) == (False, "abstention")


def without(values, *path):
    copy = inner = json.loads(json.dumps(values))
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return copy


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([{"a": 1}], r"expected objects with conversation, qa \(LoCoMo\) or .* \(LongMemEval\), got a"),
        ([], "expected a list of objects"),
        ([without(LOCOMO, "conversation", "session_1", 0, "speaker")], "conversation 0, turns.0"),
        ([without(LOCOMO, "conversation", "session_1", 0, "dia_id")], "no LoCoMo conversation .*dia_id"),
        ([without(LOCOMO, "qa", 0, "question")], "conversation 0: no LoCoMo conversation .*question"),
        ([{**LOCOMO, "conversation": {"session_1": [KILN, KILN]}, "qa": []}], "have the id 'D1:1'"),
        ([{**LONG, "haystack_dates": ["one"]}], "question 0: no LongMemEval question"),
        ([without(LONG, "haystack_sessions", 1, 0, "role")], "question 0, turns.2"),
    ],
)
def test_what_is_wrong_is_reported_with_its_location(written, values, message):
    with pytest.raises(LabError, match=f"file.json.*{message}"):
        read_published(written(values))


def test_no_file_and_no_json_are_reported(tmp_path):
    with pytest.raises(LabError, match="cannot be read"):
        read_published(tmp_path / "none.json")
    (tmp_path / "page.json").write_text("<html>")
    with pytest.raises(LabError, match="is no JSON"):
        read_published(tmp_path / "page.json")


@needs("locomo")
def test_the_published_conversations_are_complete():
    dialogues = read_published(path_of("locomo"))
    questions = [question for dialogue in dialogues for question in dialogue.questions]
    assert (len(dialogues), sum(len(dialogue.turns) for dialogue in dialogues), len(questions)) == (10, 5_882, 1_986)
    kinds = {"multi-hop": 282, "temporal": 321, "open-domain": 96, "single-hop": 841, "adversarial": 446}
    assert Counter(question.kind for question in questions) == kinds and sum(not question.evidence for question in questions) == 5

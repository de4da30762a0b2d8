"""How well evidence is found: measures worked by hand, chunks that count their own turns, and a wiring check."""

import pandas as pd
import pytest

from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.evidence import Chunk, Searched, as_markdown, by_category, chunked, evidence_parts, kept, score
from tests.protocols.conversation.parrot import NAMES, OBJECTS


@pytest.fixture
def dialogue():
    turns, questions = [], []
    for number, (name, object_) in enumerate(zip(NAMES, OBJECTS, strict=True)):
        session = {"id": f"t{number}", "session": f"{number // 4}", "date": f"day {number // 4}"}
        turns.append(session | {"speaker": "Ann", "text": f"{name} has the {object_}."})
        asked = {"id": f"q{number}", "question": f"Who has the {object_}?", "answer": name, "kind": "adversarial" if number == 3 else "one"}
        questions.append(asked | {"evidence": [f"t{number}"] if number != 5 else []})
    return Dialogue.model_validate({"id": "d", "turns": turns, "questions": questions})


def evidence_rows(dialogue, *sizes):
    return pd.concat(evidence_parts(None, [dialogue], ["baselines/rag_bm25"], [Searched(size) for size in sizes]), ignore_index=True)  # type: ignore[arg-type]


def test_measures_by_hand():
    best = [Chunk("", tuple(ids), "", words) for ids, words in (("ab", 5), ("c", 1), ("d", 1), ("e", 1), ("f", 1), ("g", 9))]
    assert score(best, {"b", "g"}) == {"hit_1": 1.0, "recall_5": 0.5, "recall_10": 1.0, "any_5": 1.0, "words_5": 9.0}
    assert score(best, {"g"}) == {"hit_1": 0.0, "recall_5": 0.0, "recall_10": 1.0, "any_5": 0.0, "words_5": 9.0}


def test_chunks_cross_no_session_and_count_their_own_turns(dialogue):
    assert [chunk.turns for chunk in chunked(dialogue, 3)] == [
        ("t0", "t1", "t2"), ("t3",), ("t4", "t5", "t6"), ("t7",), ("t8", "t9", "t10"), ("t11",)]  # fmt: skip
    [first, second, *_] = chunked(dialogue, 1, dated=True, context=1)
    assert first.turns == ("t0",) and first.text == "(day 0) Ann: Anna has the lamp. Ann: Ben has the violin."
    assert second.words == 5 and second.text.count("Ann:") == 3


def test_the_statements_decide_the_evidence_retrieved(dialogue):
    rows = evidence_rows(dialogue, 1, 3)
    assert len(rows) == 22 and rows["hit_1"].all() and "q5" not in set(rows["question"])
    assert not {"text", "answer"} & set(rows.columns)
    table = by_category(rows)
    assert {(row["chunk"], row["category"]): row["n"] for row in table.to_dict("records")} == {
        (size, kind): n for size in (1, 3) for kind, n in (("one", 10), ("adversarial", 1), ("all", 10))}  # fmt: skip
    assert "| baselines/rag_bm25 | 3 | all | 10 | 1.00 |" in as_markdown(table)
    assert " to " not in as_markdown(table), "one conversation has no interval"
    turned = dialogue.model_copy(update={"turns": tuple(turn.model_copy(update={"text": dialogue.turns[number - 1].text})
                                                         for number, turn in enumerate(dialogue.turns))})  # fmt: skip
    assert not evidence_rows(turned, 1)["hit_1"].any()


def test_the_interval_is_by_conversation(dialogue):
    """Nine conversations that find all and one that finds nothing: the interval is that of ten means, not of a hundred questions."""
    rows = evidence_rows(dialogue, 1)
    ten = pd.concat([rows.assign(dialogue=f"d{number}", any_5=float(number > 0)) for number in range(10)])
    [row] = [row for row in by_category(ten).to_dict("records") if row["category"] == "all"]
    assert row["any_5"] == 0.9 and row["any_5_low"] < 0.75, "ten independent means, of which one is 0, reach below .75"
    assert f"({row['any_5_low']:.3f}".replace("0.", ".") in as_markdown(by_category(ten))


def test_what_is_kept_is_not_asked_again(dialogue, tmp_path):
    presets, searched = ["baselines/rag_bm25"], [Searched(1), Searched(3)]
    complete = evidence_rows(dialogue, 1, 3)
    complete[complete["chunk"] == 1].to_csv(tmp_path / "rows.csv", index=False)
    rows, done = kept(tmp_path / "rows.csv")
    [rest] = evidence_parts(None, [dialogue], presets, searched, done)  # type: ignore[arg-type]
    assert len(rows) == 11 and set(rest["chunk"]) == {3} and kept(None)[1] == set()

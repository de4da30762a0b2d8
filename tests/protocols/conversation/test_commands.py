"""The phases: each can be run again alone, a failure is a line, a killed run goes on, scores follow what was said."""

import json
import math
import re
from collections import Counter

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.aggregate import aggregate, differences
from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.lines import appending, read_lines, write_lines
from hippo_core.protocols.conversation.scores import answer_scores, known_entities
from tests.protocols.conversation.parrot import NAMES, Parrot, evaluate, execute, values

BOTH = ("full", "none")


def score(text, question, dialogue):
    scores = answer_scores(text, question, known_entities(dialogue))
    return {name: None if math.isnan(value) else value for name, value in scores.items()}


def test_a_failure_is_a_line_and_is_asked_again(dialogues, tmp_path):
    raw, asleep = tmp_path / "raw.jsonl", Parrot(fails=(3, 7))
    assert execute(raw, dialogues, BOTH, asleep) == Counter(asked=48, failed=2)
    lines = read_lines(raw)
    assert [number for number, line in enumerate(lines, 1) if line["error"]] == [3, 7]
    assert lines[2]["error"] == "it is asleep" and lines[2]["text"] == "" and lines[2]["tokens_in"] is None
    again = Parrot()
    assert execute(raw, dialogues, BOTH, again) == Counter(asked=2, kept=46)
    assert again.prompts == [asleep.prompts[2], asleep.prompts[6]]
    assert len(evaluate(raw, dialogues, tmp_path / "scored.jsonl")) == 48


def test_a_killed_run_goes_on_behind_the_last_complete_line(dialogues, parrot, tmp_path):
    raw = tmp_path / "raw.jsonl"
    execute(raw, dialogues, BOTH, parrot)
    complete = raw.read_bytes()
    cut = complete[: len(complete) // 2]
    raw.write_bytes(cut)
    assert execute(raw, dialogues, BOTH, Parrot())["kept"] == cut.count(b"\n")
    timeless = [
        [{**json.loads(line), "seconds": 0, "at": "", "select_ms": 0, "index_ms": 0, "seal": ""} for line in text.splitlines()]
        for text in (complete, raw.read_bytes())
    ]
    assert timeless[0] == timeless[1]


def test_another_prompt_limit_or_provider_is_another_call(dialogues, parrot, tmp_path):
    raw = tmp_path / "raw.jsonl"
    execute(raw, dialogues, ["full"], parrot)
    other = [dialogue.model_copy(update={"turns": dialogue.turns[:2]}) for dialogue in dialogues]
    assert execute(raw, dialogues, ["full"], Parrot())["asked"] == 0
    assert execute(raw, other, ["full"], Parrot())["asked"] == 24
    assert execute(raw, dialogues, ["full"], Parrot(), max_tokens=9)["asked"] == 24
    assert execute(raw, dialogues, ["full"], Parrot(name="other"))["asked"] == 24


def test_no_text_of_a_dialogue_is_recorded(dialogues, tmp_path):
    raw = tmp_path / "raw.jsonl"
    execute(raw, dialogues, ["full"], Parrot(says=lambda prompt: "x"))
    assert not any(name in raw.read_text() for name in (*NAMES, "Noted"))


@pytest.mark.parametrize(("text", "em"), [("unknown", 1), ("Unknown.", 1), ("Ben", 0)])
def test_unknown_is_right_where_nothing_was_stated(dialogues, text, em):
    question = dialogues[0].questions[0].model_copy(update={"answerable": False, "answer": "unknown", "entities": ()})
    assert score(text, question, dialogues[0])["em"] == em and score(text, question, dialogues[0])["entity_recall"] is None


def table(folder, title):
    report = json.loads((folder / "report.json").read_text())
    [entry] = [table_ for table_ in report["tables"] if table_["title"] == title]
    return [dict(zip(entry["columns"], row, strict=True)) for row in entry["rows"]]


def test_the_report_follows_the_answers(dialogues, tmp_path):
    raw = tmp_path / "raw.jsonl"
    execute(raw, dialogues, BOTH, Parrot(fails=(1,)))
    aggregate(evaluate(raw, dialogues, tmp_path / "scored.jsonl"), tmp_path)
    full, none = table(tmp_path, "Techniques")
    assert (full["contains"], full["n"], full["failed"], none["contains"]) == ("1.00", "23", "1", "0.00")
    assert none["stale"].startswith("1.00 (0.") and none["stale"].endswith(" to 1.00)")
    assert full["overlap"].startswith("0.69 (0.") and full["EM"].endswith(")")  # 11 names, and 12 times one word of five
    assert (full["coherence"], full["fluency"]) == ("–", "–")
    [difference] = table(tmp_path, "Differences")
    assert (difference["techniques"], difference["n"], difference["difference"]) == ("full (full) − none (full)", "23", "+1.00")
    assert difference["d"] == "–"  # every dialogue differs as much
    [recall] = table(tmp_path, "Differences of entity recall")
    assert recall["d"].startswith("+") and " to " in recall["d, 95 %"]
    early = [row["early"] for row in table(tmp_path, "By position (n)")]
    assert [re.sub(r"0\.\d[1-9]", "0.x", cell) for cell in early] == ["1.00 (0.x to 1.00) (11)", "0.00 (0.00 to 0.x) (12)"]
    turned = [{**value, "questions": [{**question, "answer": "Noted"} for question in value["questions"]]} for value in values()]
    expected = [Dialogue.model_validate(value) for value in turned]  # other answers are expected: nothing is right any more
    aggregate(evaluate(raw, expected, tmp_path / "scored.jsonl"), tmp_path)
    assert [row["contains"] for row in table(tmp_path, "Techniques")] == ["0.00", "0.00"]
    assert "no judge was asked" in (tmp_path / "report.md").read_text()


def test_differences_of_three_techniques_are_corrected_both_ways():
    rows = pd.DataFrame(
        {"provider": "p", "technique": name, "budget": "full", "dialogue": f"d{number}", "question": "0", "error": None, "contains": right}
        for name, least in (("a", 0), ("b", 3), ("c", 9))
        for number in range(12)
        for right in [float(number >= least)]
    )
    lines = differences(rows).to_dict("records")
    p, holm, bonferroni = ([float(line[name].removeprefix("< ")) for line in lines] for name in ("p", "p (Holm)", "p (Bonferroni)"))
    assert bonferroni == pytest.approx([min(1, 3 * value) for value in p], abs=0.02) and sum(holm) < sum(bonferroni)


def test_tokens_that_nobody_counted_are_missing_and_not_0(dialogues, tmp_path):
    raw = tmp_path / "raw.jsonl"
    execute(raw, dialogues, ["full"], Parrot(says=lambda prompt: "<b>US</b> | x"))
    aggregate(evaluate(raw, dialogues, tmp_path / "scored.jsonl"), tmp_path)
    [full] = table(tmp_path, "Techniques")
    assert (full["tokens in"], full["tokens out"]) == ("– (0 of 24 known)", "–")


def test_mistakes_are_reported_with_file_and_line(dialogues, parrot, tmp_path):
    raw = tmp_path / "raw.jsonl"
    execute(raw, dialogues, ["full"], parrot)
    with pytest.raises(LabError, match=r"raw.jsonl:3: no question 'owner' in a dialogue 'talk-1'"):
        evaluate(raw, dialogues[:1], tmp_path / "scored.jsonl")
    assert not (tmp_path / "scored.jsonl").exists()
    raw.write_bytes(raw.read_bytes().replace(b"\n", b"\noh\n", 1))
    with pytest.raises(LabError, match=r"raw.jsonl:2: expected a JSON object"):
        evaluate(raw, dialogues, tmp_path / "scored.jsonl")
    with pytest.raises(LabError, match="unknown technique 'fill'; legal: "):
        execute(tmp_path / "other.jsonl", dialogues, ["fill"], parrot)
    assert not (tmp_path / "other.jsonl").exists()


def test_two_runs_do_not_write_one_file(tmp_path):
    with appending(tmp_path / "a.jsonl"), pytest.raises(LabError, match="written by another process"), appending(tmp_path / "a.jsonl"):
        pass


@pytest.mark.parametrize(("was", "now"), [("Kraków", "Krakov"), (": 1,", ": 0,"), ("null", "true"), ("d1", "d2")])
def test_a_line_that_was_altered_is_named(tmp_path, was, now):
    path, line = tmp_path / "raw.jsonl", {"dialogue": "d1", "answer": "Kraków", "right": 1, "score": math.nan, "error": None}
    write_lines(path, [line, line])
    assert read_lines(path) == [{**line, "score": None}] * 2
    first, second, _ = path.read_text().split("\n")
    path.write_text(f"{first}\n{second.replace(was, now, 1)}\n")
    with pytest.raises(LabError, match=r"raw\.jsonl:2 is not as it was written"):
        read_lines(path)


def test_a_line_that_a_person_or_an_earlier_lab_wrote_is_read(tmp_path):
    (tmp_path / "ratings-ann.jsonl").write_text('{"answer_id": "a", "fluency": 4}\n')
    assert read_lines(tmp_path / "ratings-ann.jsonl") == [{"answer_id": "a", "fluency": 4}]

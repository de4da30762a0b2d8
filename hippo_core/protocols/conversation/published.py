"""Conversations that others published, read by path into dialogues; none of them is kept here. A question's `kind` is its category there.

LoCoMo: ten conversations of some thirty sessions, 1,986 questions of five categories with the turns they rest on (Maharana et al. 2024).
Evidence that the file spells in one string ("D8:6; D9:17") is taken apart; a picture that is shown is its caption. Audits have found wrong
answers and wrong evidence: a list of them in the form of locomo-audit (question_id "locomo_<conversation>_qa<question>", both from 0,
correct_evidence, correct_answer) is applied where its path is given.

LongMemEval: 500 questions, each with a history of sessions of its own (Wu et al. 2025); the turns that answer are marked `has_answer`.
Questions whose id ends with `_abs` have no answer in the history: "unknown" is right.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import Dialogue, check
from hippo_core.text import normal_values

LOCOMO = {"conversation", "qa"}
LONGMEMEVAL = {"question_id", "question", "haystack_sessions"}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TURN = re.compile(r"D\d+:\d+")
NUMBERED = re.compile(r"locomo_(\d+)_qa\d+")
Values = Sequence[Mapping[str, Any]]


def read_published(path: Path, corrections: Sequence[Path] = ()) -> tuple[Dialogue, ...]:
    """The dialogues of a file. `corrections`: lists of LoCoMo's wrong questions, or folders of them.

    Raises:
        LabError: no such file, neither format, or something in it is missing or contradicts itself.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        normal_values(values, str(path))  # for its error alone: published words stay as they are
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise LabError(f"{path} is no JSON: {error}") from None
    values = values if isinstance(values, list) else [values]
    if not values or not all(isinstance(value, dict) for value in values):
        raise LabError(f"{path}: expected a list of objects, conversations of LoCoMo or questions of LongMemEval")
    if all(value.keys() >= LOCOMO for value in values):
        return _locomo(values, str(path), read_corrections(corrections))
    if all(value.keys() >= LONGMEMEVAL for value in values):
        if corrections:
            raise LabError("a list of wrong questions is one of LoCoMo's; leave it out for LongMemEval")
        return tuple(_parsed(values, str(path), "question", "LongMemEval question", lambda _, value: _history(value)))
    due = [", ".join(sorted(keys)) for keys in (LOCOMO, LONGMEMEVAL)]
    raise LabError(f"{path}: expected objects with {due[0]} (LoCoMo) or {due[1]} (LongMemEval), got {', '.join(sorted(values[0])[:6])}")


def _parsed(
    values: Values, where: str, part: str, what: str, made: Callable[[int, Mapping[str, Any]], dict[str, Any]]
) -> Iterator[Dialogue]:
    """The dialogues that parts of a file are made into; LabError, with the number of the part, where something is missing or wrong."""
    for number, value in enumerate(values):
        try:
            dialogue = Dialogue.model_validate(made(number, value))
        except ValidationError as error:
            fault = error.errors()[0]
            raise LabError(f"{where}, {part} {number}, {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise LabError(f"{where}, {part} {number}: no {what} ({type(error).__name__}: {error})") from None
        check(dialogue, f"{where}: ", verbatim=False)
        yield dialogue


def _locomo(values: Values, where: str, corrections: Mapping[str, Mapping[str, Any]]) -> tuple[Dialogue, ...]:
    """The dialogues of LoCoMo's JSON. LabError, too, where a correction is of another question."""
    unused = dict(corrections)

    def made(number: int, sample: Mapping[str, Any]) -> dict[str, Any]:
        name = str(sample.get("sample_id", f"conversation-{number}"))
        turns = list(_turns(sample["conversation"]))
        ids = {turn["id"] for turn in turns}
        questions = [_question(f"{name}.q{index}", asked, ids) for index, asked in enumerate(sample["qa"])]
        for index, question in enumerate(questions):
            if correction := unused.pop(f"locomo_{number}_qa{index}", None):
                question |= _corrected(question, correction, ids, where)
        return {"id": name, "turns": turns, "questions": questions}

    dialogues = tuple(_parsed(values, where, "conversation", "LoCoMo conversation", made))
    if left := sorted(key for key in unused if int(NUMBERED.fullmatch(key)[1]) < len(values)):  # type: ignore[index]
        raise LabError(f"{where} has no question {left[0]}, which the list of wrong questions corrects")
    return dialogues


def read_corrections(paths: Sequence[Path]) -> dict[str, Mapping[str, Any]]:
    """The wrong questions of such lists, by question_id; a folder stands for its errors_*.json."""
    corrections: dict[str, Mapping[str, Any]] = {}
    for path in (file for entry in paths for file in (sorted(entry.glob("errors_*.json")) if entry.is_dir() else [entry])):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise LabError(f"{path}: expected a JSON list of wrong questions ({error})") from None
        if not isinstance(values, list) or not all(
            isinstance(correction, dict) and NUMBERED.fullmatch(str(correction.get("question_id"))) for correction in values
        ):
            raise LabError(f"{path}: expected a list of objects with question_id locomo_<conversation>_qa<question>")
        corrections |= {correction["question_id"]: correction for correction in values}
    return corrections


def _turns(sessions: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    names = [key for key in sessions if re.fullmatch(r"session_\d+", key) and isinstance(sessions[key], list)]
    for session in sorted(names, key=lambda key: int(key.rpartition("_")[2])):
        date = str(sessions.get(f"{session}_date_time", ""))
        for turn in sessions[session]:
            picture = f" [shows a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn.get('text', '')}{picture}".strip()
            yield {"id": turn["dia_id"], "session": session, "date": date, "speaker": turn.get("speaker", ""), "text": text}


def _question(name: str, asked: Mapping[str, Any], ids: set[str]) -> dict[str, Any]:
    named = dict.fromkeys(turn for text in asked.get("evidence", ()) for turn in TURN.findall(str(text)))
    kind = CATEGORIES[asked["category"]]
    known = {"answer": "unknown", "answerable": False} if kind == "adversarial" else {"answer": str(asked["answer"])}
    evidence = tuple(turn for turn in named if turn in ids)  # the file names a few turns that it does not have
    return {"id": name, "question": asked["question"], "kind": kind, "evidence": evidence, **known}


def _corrected(question: Mapping[str, Any], correction: Mapping[str, Any], ids: set[str], where: str) -> dict[str, Any]:
    if str(correction.get("question", question["question"])).strip() != question["question"].strip():
        raise LabError(f"{where}: {correction['question_id']} of the list of wrong questions is another question than {question['id']}")
    evidence = tuple(turn for turn in correction.get("correct_evidence") or () if turn in ids)
    answer = correction.get("correct_answer") or question["answer"]
    return {"evidence": evidence or question["evidence"], "answer": str(answer)}


def _history(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A question of LongMemEval and its history as a dialogue."""
    name = str(sample["question_id"])
    absent = name.endswith("_abs")
    turns = list(_history_turns(sample))
    question = {
        "id": name,
        "question": sample["question"],
        "kind": "abstention" if absent else str(sample.get("question_type", "")),
        "evidence": tuple(turn["id"] for turn in turns if turn.pop("answers")),
        "answer": "unknown" if absent else str(sample["answer"]),
        "answerable": not absent,
    }
    return {"id": name, "turns": turns, "questions": [question]}


def _history_turns(sample: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    sessions = sample["haystack_sessions"]
    names = sample.get("haystack_session_ids") or [str(index) for index in range(len(sessions))]
    dates = sample.get("haystack_dates") or [""] * len(sessions)
    for index, (name, date, session_turns) in enumerate(zip(names, dates, sessions, strict=True)):
        session = f"{index}.{name}"  # a history may hold a session twice
        for number, turn in enumerate(turn for turn in session_turns if str(turn["content"]).strip()):
            known = {"session": session, "date": str(date), "speaker": turn.get("role", ""), "text": turn["content"]}
            yield {"id": f"{session}:{number}", "answers": bool(turn.get("has_answer")), **known}

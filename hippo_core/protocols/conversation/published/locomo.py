"""LoCoMo: ten conversations of some thirty sessions, 1,986 questions of five categories with the turns they rest on (Maharana et al. 2024).

Evidence that the file spells in one string ("D8:6; D9:17") is taken apart; a picture that is shown is its caption. Audits have found wrong
answers and wrong evidence: a list of them in the form of locomo-audit (question_id "locomo_<conversation>_qa<question>", both from 0,
correct_evidence, correct_answer) is applied where its path is given.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import Dialogue, check

KEYS = {"conversation", "qa"}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TURN = re.compile(r"D\d+:\d+")
NUMBERED = re.compile(r"locomo_(\d+)_qa\d+")


def parse(
    values: Sequence[Mapping[str, Any]], where: str, corrections: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[Dialogue]:
    """The dialogues of LoCoMo's JSON. LabError where something is missing or wrong, or a correction is of another question."""
    unused = dict(corrections or {})
    for number, one in enumerate(values):
        name = str(one.get("sample_id", f"conversation-{number}"))
        try:
            turns = list(_turns(one["conversation"]))
            ids = {turn["id"] for turn in turns}
            questions = [_question(f"{name}.q{place}", asked, ids) for place, asked in enumerate(one["qa"])]
            for place, question in enumerate(questions):
                if correction := unused.pop(f"locomo_{number}_qa{place}", None):
                    questions[place] |= _corrected(question, correction, ids, where)
            dialogue = Dialogue.model_validate({"id": name, "turns": turns, "questions": questions})
        except ValidationError as error:
            fault = error.errors()[0]
            raise LabError(f"{where}, conversation {number}, {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise LabError(f"{where}, conversation {number}: no LoCoMo conversation ({type(error).__name__}: {error})") from None
        check(dialogue, f"{where}: ", verbatim=False)
        yield dialogue
    if left := sorted(key for key in unused if int(NUMBERED.fullmatch(key)[1]) < len(values)):  # type: ignore[index]
        raise LabError(f"{where} has no question {left[0]}, which the list of wrong questions corrects")


def read_corrections(paths: Sequence[Path]) -> dict[str, Mapping[str, Any]]:
    """The wrong questions of such lists, by question_id; a folder stands for its errors_*.json."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in (file for one in paths for file in (sorted(one.glob("errors_*.json")) if one.is_dir() else [one])):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise LabError(f"{path}: expected a JSON list of wrong questions ({error})") from None
        if not isinstance(values, list) or not all(
            isinstance(one, dict) and NUMBERED.fullmatch(str(one.get("question_id"))) for one in values
        ):
            raise LabError(f"{path}: expected a list of objects with question_id locomo_<conversation>_qa<question>")
        found |= {one["question_id"]: one for one in values}
    return found


def _turns(sessions: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    names = [key for key in sessions if re.fullmatch(r"session_\d+", key) and isinstance(sessions[key], list)]
    for session in sorted(names, key=lambda key: int(key.rpartition("_")[2])):
        date = str(sessions.get(f"{session}_date_time", ""))
        for turn in sessions[session]:
            picture = f" [shows a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn.get('text', '')}{picture}".strip()
            yield {"id": turn["dia_id"], "session": session, "date": date, "speaker": turn.get("speaker", ""), "text": text}


def _question(name: str, asked: Mapping[str, Any], ids: set[str]) -> dict[str, Any]:
    named = dict.fromkeys(turn for one in asked.get("evidence", ()) for turn in TURN.findall(str(one)))
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

"""Conversations that others published, read by path into dialogues; none of them is kept here. A question's `kind` is its category there.

LoCoMo: ten conversations of some thirty sessions, 1,986 questions of five categories with the turns they rest on (Maharana et al. 2024).
Evidence that the file spells in one string ("D8:6; D9:17") is taken apart; a picture that is shown is its caption.

LongMemEval: 500 questions, each with a history of sessions of its own (Wu et al. 2025); the turns that answer are marked `has_answer`.
Questions whose id ends with `_abs` have no answer in the history: "unknown" is right.
"""

import json
import re
from collections.abc import Iterator, Mapping
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


def read_published(path: Path) -> tuple[Dialogue, ...]:
    """The dialogues of a file. LabError: no such file, neither format, or something in it is missing or contradicts itself."""
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
        part, what, made = "conversation", "LoCoMo conversation", _conversation
    elif all(value.keys() >= LONGMEMEVAL for value in values):
        part, what, made = "question", "LongMemEval question", _history
    else:
        due = [", ".join(sorted(keys)) for keys in (LOCOMO, LONGMEMEVAL)]
        raise LabError(f"{path}: expected objects with {due[0]} (LoCoMo) or {due[1]} (LongMemEval), got {', '.join(sorted(values[0])[:6])}")
    dialogues = []
    for number, value in enumerate(values):
        try:
            dialogues.append(Dialogue.model_validate(made(number, value)))
        except ValidationError as error:
            fault = error.errors()[0]
            raise LabError(f"{path}, {part} {number}, {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise LabError(f"{path}, {part} {number}: no {what} ({type(error).__name__}: {error})") from None
        check(dialogues[-1], f"{path}: ")
    return tuple(dialogues)


def _conversation(number: int, sample: Mapping[str, Any]) -> dict[str, Any]:
    """A conversation of LoCoMo as a dialogue."""
    name, turns = str(sample.get("sample_id", f"conversation-{number}")), list(_turns(sample["conversation"]))
    ids = {turn["id"] for turn in turns}
    return {"id": name, "turns": turns, "questions": [_question(f"{name}.q{at}", asked, ids) for at, asked in enumerate(sample["qa"])]}


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


def _history(_: int, sample: Mapping[str, Any]) -> dict[str, Any]:
    """A question of LongMemEval and its history as a dialogue."""
    name, turns, evidence = str(sample["question_id"]), list[dict[str, str]](), []
    absent, sessions = name.endswith("_abs"), sample["haystack_sessions"]
    names = sample.get("haystack_session_ids") or [str(index) for index in range(len(sessions))]
    dates = sample.get("haystack_dates") or [""] * len(sessions)
    for index, (session_name, date, messages) in enumerate(zip(names, dates, sessions, strict=True)):
        session = f"{index}.{session_name}"  # a history may hold a session twice
        for number, turn in enumerate(turn for turn in messages if str(turn["content"]).strip()):
            known = {"session": session, "date": str(date), "speaker": turn.get("role", ""), "text": turn["content"]}
            turns.append({"id": f"{session}:{number}", **known})
            if turn.get("has_answer"):
                evidence.append(f"{session}:{number}")
    question = {
        "id": name,
        "question": sample["question"],
        "kind": "abstention" if absent else str(sample.get("question_type", "")),
        "evidence": tuple(evidence),
        "answer": "unknown" if absent else str(sample["answer"]),
        "answerable": not absent,
    }
    return {"id": name, "turns": turns, "questions": [question]}

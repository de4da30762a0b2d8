"""LoCoMo: ten conversations of some thirty sessions, 1,986 questions of five categories with the turns they rest on (Maharana et al. 2024).

The file is the user's; nothing of it is kept here. Evidence that the file spells in one string ("D8:6; D9:17") is taken apart; the shared
picture of a turn is its caption. Audits have found wrong answers and wrong evidence: a list of them, of the format of the locomo-audit
(question_id "locomo_<conversation>_qa<question>", correct_evidence, correct_answer), is applied where its path is given.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hippo_core.files import LabError
from hippo_core.suites.natural.conversations import Conversation, EvidenceQuestion, Utterance, check

KEYS = {"conversation", "qa"}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TURN = re.compile(r"D\d+:\d+")


def parse(values: Sequence[Mapping[str, Any]], where: str, corrections: Mapping[str, Mapping[str, Any]] | None = None) -> Iterator[Conversation]:
    """The conversations of LoCoMo's JSON. LabError where something is missing or contradicts itself, or a correction is of another question."""
    unused = dict(corrections or {})
    for number, one in enumerate(values):
        name = str(one.get("sample_id", f"conversation-{number}"))
        try:
            utterances = tuple(_utterances(one["conversation"]))
            ids = {said.id for said in utterances}
            questions = [_question(f"{name}.q{place}", asked, ids) for place, asked in enumerate(one["qa"])]
        except (KeyError, TypeError, AttributeError) as error:
            raise LabError(f"{where}, conversation {number}: no LoCoMo conversation ({type(error).__name__}: {error})") from None
        for place, question in enumerate(questions):
            if correction := unused.pop(f"locomo_{number}_qa{place}", None):
                questions[place] = _corrected(question, correction, ids, where)
        yield check(Conversation(name, utterances, tuple(questions)), where)
    if left := sorted(key for key in unused if int(re.findall(r"\d+", key)[0]) < len(values)):
        raise LabError(f"{where} has no question {left[0]}, which the list of wrong questions corrects")


def read_corrections(paths: Sequence[Path]) -> dict[str, Mapping[str, Any]]:
    """The wrong questions of lists of the locomo-audit's format, by question_id; a folder stands for its errors_*.json."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in (file for one in paths for file in (sorted(one.glob("errors_*.json")) if one.is_dir() else [one])):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise LabError(f"{path}: expected a JSON list of wrong questions ({error})") from None
        if not isinstance(values, list) or not all(isinstance(one, dict) and TURNED.fullmatch(str(one.get("question_id"))) for one in values):
            raise LabError(f"{path}: expected a list of objects with question_id locomo_<conversation>_qa<question>")
        found |= {one["question_id"]: one for one in values}
    return found


TURNED = re.compile(r"locomo_\d+_qa\d+")


def _utterances(sessions: Mapping[str, Any]) -> Iterator[Utterance]:
    names = [key for key in sessions if re.fullmatch(r"session_\d+", key) and isinstance(sessions[key], list)]
    for session in sorted(names, key=lambda key: int(key.rpartition("_")[2])):
        for turn in sessions[session]:
            picture = f" [shows a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            date = str(sessions.get(f"{session}_date_time", ""))
            yield Utterance(turn["dia_id"], session, date, str(turn.get("speaker", "")), f"{turn.get('text', '')}{picture}".strip())


def _question(name: str, asked: Mapping[str, Any], ids: set[str]) -> EvidenceQuestion:
    named = dict.fromkeys(turn for one in asked.get("evidence", ()) for turn in TURN.findall(str(one)))
    known = tuple(turn for turn in named if turn in ids)  # the file names a few turns that it does not have
    category = CATEGORIES[asked["category"]]
    return EvidenceQuestion(name, category, str(asked["question"]).strip(), "" if category == "adversarial" else str(asked["answer"]), known)


def _corrected(question: EvidenceQuestion, correction: Mapping[str, Any], ids: set[str], where: str) -> EvidenceQuestion:
    if str(correction.get("question", question.question)).strip() != question.question:
        raise LabError(f"{where}: {correction['question_id']} of the list of wrong questions is another question than {question.id}")
    evidence = tuple(turn for turn in correction.get("correct_evidence") or () if turn in ids)
    return replace(question, evidence=evidence or question.evidence, answer=str(correction.get("correct_answer", question.answer)))

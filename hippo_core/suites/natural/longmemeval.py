"""LongMemEval: 500 questions, each with a history of sessions of its own (Wu et al. 2025); the turns that answer are marked `has_answer`.

The file is the user's; nothing of it is kept here. Questions whose id ends with `_abs` have no answer in the history.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hippo_core.files import LabError
from hippo_core.suites.natural.conversations import Conversation, EvidenceQuestion, Utterance, check

KEYS = {"question_id", "question", "haystack_sessions"}


def parse(values: Sequence[Mapping[str, Any]], where: str) -> Iterator[Conversation]:
    """A conversation a question. LabError where something is missing."""
    for number, one in enumerate(values):
        name = str(one["question_id"])
        try:
            sessions = one["haystack_sessions"]
            ids = one.get("haystack_session_ids") or [f"s{place}" for place in range(len(sessions))]
            dates = one.get("haystack_dates") or [""] * len(sessions)
            utterances, evidence = [], []
            for place, (session, date, turns) in enumerate(zip(ids, dates, sessions, strict=True)):
                for count, turn in enumerate(turns):
                    key = f"{place}.{session}:{count}"  # a history may hold a session twice
                    utterances.append(Utterance(key, f"{place}.{session}", str(date), str(turn.get("role", "")), str(turn["content"])))
                    evidence += [key] * bool(turn.get("has_answer"))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise LabError(f"{where}, question {number}: no LongMemEval question ({type(error).__name__}: {error})") from None
        category = "abstention" if name.endswith("_abs") else str(one.get("question_type", ""))
        answer = "" if category == "abstention" else str(one.get("answer", ""))
        question = EvidenceQuestion(name, category, str(one["question"]).strip(), answer, tuple(evidence))
        yield check(Conversation(name, tuple(utterances), (question,)), where)

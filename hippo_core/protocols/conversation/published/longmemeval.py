"""LongMemEval: 500 questions, each with a history of sessions of its own (Wu et al. 2025); the turns that answer are marked `has_answer`.

Questions whose id ends with `_abs` have no answer in the history: "unknown" is right.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import Dialogue, check

KEYS = {"question_id", "question", "haystack_sessions"}


def parse(values: Sequence[Mapping[str, Any]], where: str) -> Iterator[Dialogue]:
    """A dialogue a question. LabError where something is missing or wrong."""
    for number, one in enumerate(values):
        name = str(one["question_id"])
        absent = name.endswith("_abs")
        try:
            turns = list(_turns(one))
            question = {
                "id": name,
                "question": one["question"],
                "kind": "abstention" if absent else str(one.get("question_type", "")),
                "evidence": tuple(turn["id"] for turn in turns if turn.pop("answers")),
                "answer": "unknown" if absent else str(one["answer"]),
                "answerable": not absent,
            }
            dialogue = Dialogue.model_validate({"id": name, "turns": turns, "questions": [question]})
        except ValidationError as error:
            fault = error.errors()[0]
            raise LabError(f"{where}, question {number}, {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise LabError(f"{where}, question {number}: no LongMemEval question ({type(error).__name__}: {error})") from None
        check(dialogue, f"{where}: ", verbatim=False)
        yield dialogue


def _turns(one: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    sessions = one["haystack_sessions"]
    names = one.get("haystack_session_ids") or [str(place) for place in range(len(sessions))]
    dates = one.get("haystack_dates") or [""] * len(sessions)
    for place, (name, date, said) in enumerate(zip(names, dates, sessions, strict=True)):
        session = f"{place}.{name}"  # a history may hold a session twice
        for number, turn in enumerate(turn for turn in said if str(turn["content"]).strip()):
            known = {"session": session, "date": str(date), "speaker": turn.get("role", ""), "text": turn["content"]}
            yield {"id": f"{session}:{number}", "answers": bool(turn.get("has_answer")), **known}

"""Phase two: score the answers of raw.jsonl against the dialogues; scored.jsonl is written anew, whole. What failed has no score.

`em`: the expected answer, or an accepted one, stands in the answer as whole words; where "unknown" is right, whether that is said.
`entity_recall`: the share of the expected entities that are named; `entity_precision`: of the dialogue's entities that are named, the share
that is expected; `refuted`: whether something is named that was corrected later.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hippo_core.conversation.dialogue import Dialogue, Question
from hippo_core.conversation.words import holds
from hippo_core.files import LabError
from hippo_core.lab.converse.execute import key_of
from hippo_core.lab.converse.lines import read_lines, write_lines
from hippo_core.results.scores import abstained

SCORES = ("em", "entity_recall", "entity_precision", "refuted")


def evaluate(raw: Path, dialogues: Sequence[Dialogue], out: Path) -> list[dict[str, Any]]:
    """Score every call's last record, and write them. LabError, with the line, for an answer to a question that the dialogues lack."""
    known = {(dialogue.id, question.id): (dialogue, question) for dialogue in dialogues for question in dialogue.questions}
    scored: dict[str, dict[str, Any]] = {}
    for number, record in enumerate(read_lines(raw), 1):
        place = (record.get("dialogue"), record.get("question"))
        if place not in known:
            raise LabError(f"{raw}:{number}: no question {place[1]!r} in a dialogue {place[0]!r}; give the dialogues that were executed")
        dialogue, question = known[place]  # type: ignore[index]
        about = {"answer_id": key_of(record), "position": question.position, "salience": question.salience, "kind": question.kind}
        failed = record["error"] is not None
        scores = dict.fromkeys(SCORES) if failed else score(record["text"], question, entities(dialogue))
        scored[about["answer_id"]] = {**record, "schema": "conversation.scored.v1", **about, **scores}
    write_lines(out, list(scored.values()))
    return list(scored.values())


def entities(dialogue: Dialogue) -> set[str]:
    """All that the questions of a dialogue name as entities."""
    return {name for question in dialogue.questions for name in question.entities}


def score(text: str, question: Question, of_dialogue: Iterable[str] = ()) -> dict[str, float | None]:
    """The scores of an answer; None where a question has nothing to score it by."""
    if question.answerable:
        em = any(holds(text, answer) for answer in (question.answer, *question.accepted))
    else:
        em = bool(abstained(text)) or holds(text, "unknown")
    expected = {name.lower() for name in question.entities}
    named = {name.lower() for name in {*of_dialogue, *question.entities} if holds(text, name)}
    return {
        "em": float(em),
        "entity_recall": len(named & expected) / len(expected) if expected else None,
        "entity_precision": len(named & expected) / len(named) if named and expected else None,
        "refuted": float(any(holds(text, one) for one in question.refuted)) if question.refuted else None,
    }

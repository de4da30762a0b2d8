"""Phase two: score the answers of raw.jsonl against the dialogues; scored.jsonl is written anew, whole. What failed has no score.

`em`: the answer is the expected one, or an accepted one. `contains`: it has one of them in it, as whole words; of models that answer in
sentences that is what tells. Where "unknown" is right, that is the expected answer. `stale`: it names what was corrected later.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hippo_core.conversation.dialogue import Dialogue, Question
from hippo_core.conversation.scores import entity_precision, entity_recall, exact, known_entities
from hippo_core.conversation.words import holds
from hippo_core.files import LabError
from hippo_core.lab.converse.execute import key_of
from hippo_core.lab.converse.lines import read_lines, write_lines

SCORES = ("em", "contains", "entity_recall", "entity_precision", "stale")


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
        scores: dict[str, float | None] = dict.fromkeys(SCORES) if failed else score(record["text"], question, dialogue)
        scored[about["answer_id"]] = {**record, "schema": "conversation.scored.v1", **about, **scores}
    write_lines(out, list(scored.values()))
    return list(scored.values())


def score(text: str, question: Question, dialogue: Dialogue) -> dict[str, float | None]:
    """The scores of an answer; None where a question has nothing to score it by."""
    accepted = (question.answer, *question.accepted) if question.answerable else ("unknown",)
    scores = {
        "em": exact(text, accepted),
        "contains": float(any(holds(text, one) for one in accepted)),
        "entity_recall": entity_recall(text, question.entities),
        "entity_precision": entity_precision(text, question.entities, known_entities(dialogue))  # type: ignore[arg-type]
        if question.entities
        else math.nan,
        "stale": float(any(holds(text, one) for one in question.refuted)) if question.refuted else math.nan,
    }
    return {name: None if math.isnan(value) else value for name, value in scores.items()}

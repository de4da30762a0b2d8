"""Scores of an answer to a question about a dialogue."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hippo_core.protocols.conversation.dialogue import Dialogue, DialogueQuestion, contains_words, is_verbatim
from hippo_core.results.scores import token_f1
from hippo_core.text import words

ARTICLES = frozenset({"a", "an", "the"})


def plain(text: str) -> list[str]:
    """A text's words in lower case without articles, unless there is nothing else."""
    parts = [part for word in words(text) for part in word.split("'")]
    return [word for word in parts if word not in ARTICLES] or parts


def exact(response: str, accepted: Sequence[str]) -> float:
    """1 where the response is an accepted answer, but for case, punctuation and articles."""
    tokens = plain(response)
    return float(bool(tokens) and any(tokens == plain(answer) for answer in accepted))


def entity_recall(response: str, entities: Sequence[str]) -> float:
    """Share of the expected entities that the response names as whole words; NaN where none is expected."""
    return sum(contains_words(response, entity) for entity in entities) / len(entities) if entities else math.nan


def entity_precision(response: str, entities: Sequence[str], known: Sequence[str]) -> float:
    """Of the known entities that the response names, the share that is expected; NaN where it names none. One inside another that is named
    (glass in looking glass) does not count."""
    named = [entity for entity in known if contains_words(response, entity)]
    longest = [entity for entity in named if not any(entity != other and contains_words(other, entity) for other in named)]
    expected = {entity.lower() for entity in entities}
    return sum(entity.lower() in expected for entity in longest) / len(longest) if longest else math.nan


def known_entities(dialogue: Dialogue) -> tuple[str, ...]:
    """Entities that an answer about this dialogue may name: those of its questions, what was corrected, and names in its turns."""
    entities = {entity for question in dialogue.questions for entity in (*question.entities, *question.refuted)}
    for turn in dialogue.turns:
        entities |= set(re.findall(r"(?<=[\w,] )[A-Z]\w+", turn.text))
    return tuple(sorted(entities))


def hit(ranking: Sequence[int] | None, evidence: Sequence[int], k: int) -> float:
    """Whether a turn of the evidence is among the k best; NaN where nothing is ranked."""
    return math.nan if ranking is None or not evidence else float(bool(set(ranking[:k]) & set(evidence)))


def recall(ranking: Sequence[int] | None, evidence: Sequence[int], k: int) -> float:
    """Share of the evidence among the k best; NaN where nothing is ranked."""
    return math.nan if ranking is None or not evidence else len(set(ranking[:k]) & set(evidence)) / len(set(evidence))


def answer_scores(response: str, question: DialogueQuestion, known: Sequence[str]) -> dict[str, float]:
    """The scores of an answer; NaN where a question has nothing to score it by. `known`: entities that it may name.

    em: the response is the answer. contains: it has the answer in it, as whole words; of models that answer in sentences that is what
    tells. overlap: F1 of its words with those of the accepted answer that is likest, for answers in other words than the turns. stale: it
    has what a later turn corrected. Where "unknown" is right, that is the answer.
    """
    accepted = _accepted(question)
    return {
        "em": exact(response, accepted),
        "contains": float(any(contains_words(response, text) for text in accepted)),
        "overlap": token_f1(response, accepted),
        "entity_recall": entity_recall(response, question.entities),
        "entity_precision": entity_precision(response, question.entities, known) if question.entities else math.nan,
        "stale": float(any(contains_words(response, text) for text in question.refuted)) if question.refuted else math.nan,
    }


def _accepted(question: DialogueQuestion) -> tuple[str, ...]:
    return (question.answer, *question.accepted) if question.answerable else ("unknown",)


def scored(row: Mapping[str, Any], dialogue: Dialogue, question: DialogueQuestion, known: Sequence[str]) -> dict[str, Any]:
    """All scores of a raw row, and what it is grouped by. An answer that failed has none.

    presence: the answer stands in what was shown, the ceiling of a reader; NaN where a row does not keep its `lines`, or the answer stands
    in no turn. shown: share of the evidence that was shown; NaN where the technique failed. distance: turns behind the last evidence. key:
    what kind of information the evidence is.
    """
    evidence, ranking, lines = dialogue.indices(question.evidence), row["ranking"], row.get("lines")
    answered, accepted = answer_scores(row["text"], question, known), _accepted(question)
    text = "\n".join(lines) if lines is not None and question.answerable and is_verbatim(dialogue, question) else None
    return {
        **{name: math.nan if row["error"] else value for name, value in answered.items()},
        "presence": math.nan if text is None else float(any(contains_words(text, answer) for answer in accepted)),
        "shown": recall(row["places"], evidence, len(row["places"] or ())),
        "hit_1": hit(ranking, evidence, 1),
        "recall_5": recall(ranking, evidence, 5),
        "recall_10": recall(ranking, evidence, 10),
        "tokens": math.nan if row["tokens_in"] is None else float(row["tokens_in"]),
        "ms": row["select_ms"] + 1e3 * row["seconds"],
        "position": question.position or "",
        "salience": question.salience or "",
        "kind": question.kind,
        "category": dialogue.category,
        "key": next((key for index in evidence if (key := dialogue.turns[index].key)), ""),
        "turns": len(dialogue.turns),
        "distance": len(dialogue.turns) - 1 - max(evidence) if evidence else None,
    }

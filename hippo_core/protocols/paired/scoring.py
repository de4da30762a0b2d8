"""Scores of one item under one condition. What has no value is None, never 1: an item that expects no note has no recall."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from hippo_core.protocols.paired import assertions
from hippo_core.protocols.paired.answering import ItemAnswer
from hippo_core.protocols.paired.conditions import SCORES, RetrievedNotes, expected
from hippo_core.protocols.paired.items import Asking, GroundedAnswer, ResumeQuality, Retrieval
from hippo_core.protocols.paired.suite import SuiteNote


@dataclass(frozen=True)
class Scored:
    """`success`: None where the condition cannot succeed or fail at this item; `scores` by name, None where there is no value."""

    success: bool | None
    scores: dict[str, float | None] = field(default_factory=dict)


def recall_at_k(ranking: Sequence[str], wanted: Collection[str], k: int) -> float | None:
    """The share of the wanted notes among the first k."""
    return len(set(ranking[:k]) & set(wanted)) / len(set(wanted)) if wanted else None


def reciprocal_rank(ranking: Sequence[str], wanted: Collection[str]) -> float | None:
    """One over the rank of the first wanted note; 0 where none was ranked."""
    if not wanted:
        return None
    return next((1 / rank for rank, note_id in enumerate(ranking, start=1) if note_id in wanted), 0.0)


def ndcg(ranking: Sequence[str], wanted: Collection[str], k: int) -> float | None:
    """Normalised discounted cumulative gain of the first k with gain 1 for a wanted note (Jarvelin and Kekalainen 2002); the ideal ranks
    all of them first, as many as k holds, whatever was returned."""
    if not wanted:
        return None
    gained = sum(1 / math.log2(rank + 1) for rank, note_id in enumerate(ranking[:k], start=1) if note_id in wanted)
    return gained / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(set(wanted))) + 1))


def covered(retrieved: Collection[str], wanted: Collection[str]) -> float | None:
    """The share of wanted tags or files that the retrieved notes have, in either case of letters."""
    known, asked = ({name.strip().lower() for name in names} for names in (retrieved, wanted))
    return len(known & asked) / len(asked) if asked else None


def score(item: Asking, retrieved: RetrievedNotes, answer: ItemAnswer | None, notes: Sequence[SuiteNote]) -> Scored:
    """The scores of an item. `notes`: of its world. An error in recall or answer is a failure."""
    scores = _of_notes(item, retrieved, answer, notes)
    if retrieved.error or (answer and answer.error):
        return Scored(False, scores)
    if isinstance(item, Retrieval):
        wanted = [scores[name] for name in ("recall_at_k", "tag_recall", "file_recall") if scores[name] is not None]
        return Scored(None if retrieved.ranking is None else all(value == 1 for value in wanted), scores)
    text = answer.text if answer else ""
    scores["refused"] = refused = float(assertions.refuses(text))
    if isinstance(item, GroundedAnswer):
        name, required, forbidden, meets = "assertion_recall", item.required_assertions, item.forbidden_assertions, True
    elif isinstance(item, ResumeQuality):
        name, required, forbidden, meets = "topic_recall", item.required_topics, item.forbidden_topics, True
    elif item.expect == "refuse":
        name, required, forbidden, meets = "", [], item.stale_assertions, bool(refused)
    else:
        name, required, forbidden, meets = "assertion_recall", item.fresh_assertions, item.stale_assertions, not refused
    scores["forbidden_hits"] = float(assertions.hits(text, forbidden))
    if name:
        scores[name] = assertions.recall(text, required)
        meets = meets and scores[name] == 1
    return Scored(meets and not scores["forbidden_hits"], scores)


def _of_notes(item: Asking, retrieved: RetrievedNotes, answer: ItemAnswer | None, notes: Sequence[SuiteNote]) -> dict[str, float | None]:
    """The scores of a ranking; and the share of cited notes that were expected, None where nothing was cited or expected."""
    scores: dict[str, float | None] = dict.fromkeys(SCORES)
    wanted, cited = expected(item), set(answer.cited or ()) if answer else set()
    if retrieved.ranking is not None:
        scores["recall_at_k"] = recall_at_k(retrieved.ranking, wanted, item.top_k)
        scores["mrr"] = reciprocal_rank(retrieved.ranking, wanted)
        scores["ndcg"] = ndcg(retrieved.ranking, wanted, item.top_k)
        if isinstance(item, Retrieval):
            there = [note for note in notes if note.id in retrieved.ranking[: item.top_k]]
            scores["tag_recall"] = covered([tag for note in there for tag in note.tags], item.expected_tags)
            scores["file_recall"] = covered([file for note in there for file in note.files], item.expected_files)
    if cited and wanted:
        scores["citation_precision"] = len(cited & set(wanted)) / len(cited)
    return scores

"""Scores of one answer: exact match raw and normalised, token F1, path success, what is odd about the answer's form; and of the ranking of
passages behind it.

All functions are pure and take the prediction as it was generated. An accepted answer is any of `Item.answers`; a score is the best over
them. An empty prediction scores 0. For every item `em_raw <= em_norm <= f1`: normalising can only help, and equal bags of words overlap.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.store.trace import Trace
from hippo_core.suites.types import Item, Suite, World
from hippo_core.text import KATAKANA, PUNCTUATION, UNSPACED, WORD, folded, words

if TYPE_CHECKING:
    import pandas as pd

ARTICLES = frozenset({"a", "an", "the"})
MARKS = re.compile(f"[{PUNCTUATION}]+")
JOINS = re.sub(r"\\?[+#*/^=<>|]", "", PUNCTUATION)  # what calculates or compares joins no words
LETTER = rf"[^\W\d{UNSPACED}{KATAKANA}]"
INSIDE = re.compile(  # between letters, or between a letter and a digit
    rf"(?<=[^\W\d])[{JOINS}]+(?=[^\W\d])|(?<={LETTER})[{JOINS}](?=\d)|(?<=\d)[{JOINS}]+(?={LETTER})"
)
RECALL_AT, ANSWER_AT, ALL_AT = (1, 2, 3, 5, 10, 20), (1, 5), 5
RANKING_COLUMNS = (*(f"recall_{k}" for k in RECALL_AT), f"all_gold_{ALL_AT}", *(f"answer_recall_{k}" for k in ANSWER_AT))
REFUSALS = (
    re.compile(r"\bi (?:can't|can not|cannot|won't|will not|am unable|do not have|don't have)\b", re.IGNORECASE),
    re.compile(r"\bi'm (?:unable|not able)\b", re.IGNORECASE),
    re.compile(r"\bas an? (?:ai|(?:large )?language model)\b", re.IGNORECASE),
)


def normalise(text: str) -> str:
    """Lower case, punctuation out (not that of numbers), the articles a/an/the out (unless there is nothing else), one space between
    words. What punctuation joins stays joined ("well-known", "Lea's"), but for digits: 7:30 is not 730. Without a word, symbols count."""
    joined = INSIDE.sub("", folded(text).replace("_", ""))
    tokens = words(joined) or [symbols for part in joined.split() if (symbols := MARKS.sub("", part))]
    return " ".join([word for word in tokens if word not in ARTICLES] or tokens)


def em_raw(prediction: str, answers: Sequence[str]) -> int:
    """1 where the prediction, but for space around it, is an accepted answer letter by letter."""
    return int(bool(prediction.strip()) and prediction.strip() in {answer.strip() for answer in answers})


def em_norm(prediction: str, answers: Sequence[str]) -> int:
    """1 where the normalised prediction equals a normalised accepted answer."""
    predicted = normalise(prediction)
    return int(em_raw(prediction, answers) or (bool(predicted) and predicted in {normalise(answer) for answer in answers}))


def token_f1(prediction: str, answers: Sequence[str]) -> float:
    """The best F1 of the bags of words of the normalised prediction and accepted answers."""
    if em_raw(prediction, answers):
        return 1.0
    best, predicted = 0.0, normalise(prediction).split()
    for gold in (normalise(answer).split() for answer in answers):
        if shared := sum((Counter(predicted) & Counter(gold)).values()):
            best = max(best, 2 * shared / (len(predicted) + len(gold)))
    return best


def format_violation(prediction: str) -> int:
    """1 where the answer ends in punctuation, or holds a full stop or a line break; those of a number or a name (1.5, 50%, C#) are none."""
    between = WORD.sub("w", prediction.strip())
    return int(bool(between) and (MARKS.match(between[-1]) is not None or "." in between or "\n" in between))


def refusal(prediction: str) -> int:
    """1 where the model declines to answer ("I can't", "as an AI", ...), with a straight or a curly apostrophe."""
    plain = " ".join(re.sub("[\u2018\u2019\u02bc\u0060\u00b4]", "'", prediction).split())
    return int(any(pattern.search(plain) for pattern in REFUSALS))


def abstained(prediction: str) -> int:
    """1 where the answer is "unknown": an answer in due form, not a refusal."""
    return int(normalise(prediction) == "unknown")


def score_item(suite: Suite, world: World, item: Item, prediction: str) -> dict[str, float]:
    """The score columns of an item's row. `refuted`: whether the answer was told and does not hold, NaN where no such thing was told.

    `score` is the first of the suite's own measures where it brings any, each with a column of its name, else its primary; where that is
    `success` and the item has no path (both path columns are NaN then), it is `em_norm`.
    """
    path = suite.score_path(world, item, prediction) if suite.score_path else None
    raw, norm = em_raw(prediction, item.answers), em_norm(prediction, item.answers)
    pred_len, gold_len = len(prediction.split()), len(item.answers[0].split())
    own = {name: float(measure(world, item, prediction)) for name, measure in suite.measures.items()}
    primary = raw if suite.primary == "em_raw" else norm
    if suite.primary == "success" and path is not None:
        primary = path.success
    return {
        "em_raw": raw,
        "em_norm": norm,
        "f1": token_f1(prediction, item.answers),
        "success": path.success if path else math.nan,
        "suboptimality": path.suboptimality if path else math.nan,
        "localisation_error": suite.localise(world, item, prediction) if suite.localise else math.nan,
        "score": next(iter(own.values()), primary),
        "chance": item.chance,
        "pred_len": pred_len,
        "gold_len": gold_len,
        "overlong": int(pred_len > gold_len),
        "format_violation": format_violation(prediction),
        "refusal": refusal(prediction),
        "abstained": abstained(prediction),
        "refuted": float(em_norm(prediction, item.refuted)) if item.refuted else math.nan,
        **own,
    }


def score_ranking(ranking: Sequence[Trace] | None, item: Item) -> dict[str, float]:
    """`recall_k`: the share of the gold facts among the k best; `all_gold_k`: whether all of them are; `answer_recall_k`: whether an
    accepted answer stands in one of the k best, word for word once both are normalised. NaN without a ranking, or without gold facts. A
    fact that tells a gold one again is as good as that."""
    if ranking is None or not item.gold_facts:
        return dict.fromkeys(RANKING_COLUMNS, math.nan)
    gold, sources = set(item.gold_facts), [item.retold.get(trace.source, trace.source) for trace in ranking[: max(RECALL_AT)]]
    recall = {f"recall_{k}": len(gold & set(sources[:k])) / len(gold) for k in RECALL_AT}
    all_gold = {f"all_gold_{ALL_AT}": float(gold <= set(sources[:ALL_AT]))}
    return recall | all_gold | {f"answer_recall_{k}": answer_recall(ranking, item.answers, k) for k in ANSWER_AT}


def answer_recall(ranking: Sequence[Trace], answers: Sequence[str], k: int) -> float:
    """1 where one of the k best holds an accepted answer, else 0."""
    wanted = [f" {normalise(answer)} " for answer in answers if normalise(answer)]
    return float(any(answer in f" {normalise(trace.text)} " for trace in ranking[:k] for answer in wanted))


def check_rows(suite: Suite, worlds: Sequence[World], rows: "pd.DataFrame") -> None:
    """Raise LabError where a row does not name an item of `worlds`, carry that item's answers and have the scores that its prediction
    earns, in a table in memory or of a CSV file."""
    items = {item.id: (world, item) for world in worlds for item in world.items}
    for row in rows.to_dict("records"):
        if row["item_id"] not in items:
            raise LabError(f"row table: item {row['item_id']!r} is not in the suite {suite.name}")
        world, item = items[row["item_id"]]
        gold = " | ".join(item.answers)
        if str(row["answer"]) != gold:
            raise LabError(f"row table: item {item.id!r} has the answer {row['answer']!r}, the suite says {gold!r}")
        prediction, forced = (cell if isinstance(cell, str) else "" for cell in (row["pred"], row.get("forced")))  # NaN of a CSV is ""
        _check_scores(item, row, prediction, score_item(suite, world, item, prediction))
        if "forced" in row:
            if forced != prediction and not abstained(prediction):
                raise LabError(f"row table: item {item.id!r} was answered {prediction!r}, which is no unknown, and forced to {forced!r}")
            _check_scores(item, row, forced, {"score_forced": score_item(suite, world, item, forced)["score"]})


def _check_scores(item: Item, row: Mapping[str, Any], prediction: str, scores: Mapping[str, float]) -> None:
    for column, due in scores.items():
        got = float(row[column])
        if not ((math.isnan(got) and math.isnan(due)) or math.isclose(got, due, abs_tol=1e-6)):
            raise LabError(f"row table: item {item.id!r} has {column} {got:g}, its prediction {prediction!r} earns {due:g}")

"""Which of several versions of a fact holds: the model reads each of the best statements alone, and the latest that answers comes first.

    The book club meets on Tuesdays.          read alone: Tuesdays
    The club has moved to Thursdays.          read alone: Thursdays     the latest that answers
    Lena plays the cello.                     read alone: unknown

With both versions in its prompt a small model takes either. With one of them it says what that one says, or "unknown". A statement answers
where the model's margin for "unknown" is low enough. The limit is lower the farther the statement stands from the best one in the ranking,
and less so where the fitted tagger (relational/encoder.py) reads a change in it. A text of several sentences is no statement: it is not
read, and stays where it is. The four numbers were chosen on validation worlds (relations, episodic_multi, episodic) and on twenty
everyday changes.
"""

import math
import re
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hippo_core.methods.base import Query
from hippo_core.retrieval.lexicon import sentences
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel
    from hippo_core.models.prompt import Decoding

READ = 4  # of the best statements, the most that are read alone
LIMIT = 1.0  # nats: the most that the margin for "unknown" may be, for the best statement of a ranking to answer
PLAIN, CHANGE = 20.0, 5.0  # nats that this limit is lower for a statement as far as the rest of the ranking: a plain one, one of a change
LEAST = -12.0  # nats: a statement whose limit is below this is not read
NO_END = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St)\.|^\s*\d+[.)](?=\s)")  # a title's full stop, or a list number's, ends no sentence
FORMER = re.compile(r"\b(?:before|previous|previously|former|formerly|earlier|originally|used to)\b", re.IGNORECASE)


class Versions(NamedTuple):
    """The indices of a ranking in their new order, the traces that hold no longer, and the tokens that the model ran."""

    order: Sequence[int]
    replaced: tuple[Trace, ...]
    tokens: float


def current_first(
    lm: "LanguageModel", query: Query, ranking: Sequence[Trace], scores: Sequence[float], decoding: "Decoding" = "short"
) -> Versions:
    """Put the statement that holds first, and what it replaced behind the others. Where the question asks of what was so before, the last
    statement that says otherwise comes first. LabError where MiniLM or what was fitted of it is missing.

    Args:
        ranking: traces, best first.
        scores: theirs, higher is better; fewer where the rest was not scored.
        decoding: how the model is asked.
    """
    unchanged = Versions(range(len(ranking)), (), 0.0)
    statements = [rank for rank in range(min(len(scores), len(ranking), 2 * READ)) if _is_statement(ranking[rank])][:READ]
    if len(statements) < 2 or statements[0]:
        return unchanged
    from hippo_core.methods.relational.statement_reader import fitted_reader
    from hippo_core.models.abstention import UNKNOWN

    top, rest = max(scores), sorted(scores)[:-READ]
    spread = top - statistics.median(rest) if rest else math.inf  # where nothing else is ranked, distances say nothing
    limits = dict[int, float]()
    for rank, tagged in zip(statements, fitted_reader(str(lm.device)).tag([ranking[rank].text for rank in statements]), strict=True):
        distance = (top - scores[rank]) / max(spread, 1e-9)
        limit = LIMIT - distance * (tagged.change * CHANGE + (1 - tagged.change) * PLAIN)
        limits |= {rank: limit} if limit >= LEAST else {}
    if len(limits) < 2:
        return unchanged
    answers, margins, tokens = _read_alone(lm, query, [ranking[rank].text for rank in limits], decoding)
    answering = [
        (ranking[rank].time, ranking[rank].id, rank, answer)
        for rank, answer, margin, limit in zip(limits, answers, margins, limits.values(), strict=True)
        if margin <= limit and answer != UNKNOWN
    ]
    if not answering:
        return unchanged._replace(tokens=tokens)
    *earlier, (*_, first, answer) = sorted(answering)
    others = [rank for *_, rank, other in earlier if other != answer]
    replaced = others
    if FORMER.search(query.text) and others:
        first, replaced = others[-1], []
    kept = [rank for rank in range(len(ranking)) if rank != first and rank not in replaced]
    return Versions([first, *kept[:READ], *replaced, *kept[READ:]], tuple(ranking[rank] for rank in replaced), tokens)


def _is_statement(trace: Trace) -> bool:
    return len(sentences(NO_END.sub(r"\1", trace.text))) == 1


def _read_alone(lm: "LanguageModel", query: Query, texts: Sequence[str], decoding: "Decoding") -> tuple[list[str], list[float], float]:
    """What the model answers from each text alone, its margins for "unknown" (nats), and the tokens of all."""
    from hippo_core.models.generate import generate
    from hippo_core.models.prompt import render, stops

    prompts = [render(lm, [text], query.text, decoding) for text in texts]
    read = generate(lm, prompts, query.room, stop=stops(lm, decoding))
    tokens = sum(one.computed_tokens + one.generated_tokens for one in read)
    return [one.text.strip(" .").lower() for one in read], [one.unknown_margin for one in read], tokens

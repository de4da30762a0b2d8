"""Which of several versions of a fact holds: the model reads each of the best statements alone, and the latest that answers comes first.

    The book club meets on Tuesdays.          read alone: Tuesdays
    The club has moved to Thursdays.          read alone: Thursdays     the latest that answers
    Lena plays the cello.                     read alone: unknown

With both versions in its prompt a small model takes either. With one of them it says what that one says, or "unknown". A statement answers
where the model's margin for "unknown" and its distance from the best statement in the ranking are small together. A text of several
sentences is no statement: it is not read, and stays where it is.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hippo_core.methods.base import Query
from hippo_core.retrieval.lexicon import sentences
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel
    from hippo_core.models.prompt import Decoding

FAR = 10.0  # nothing farther than this from the best statement is read
READ = 4  # of the best statements, the most that are read alone
LIMIT = -2.0  # nats: the most that the margin for "unknown" and the distance may be together, for a statement to answer
FORMER = re.compile(r"\b(?:before|previous|previously|former|formerly|earlier|originally|used to)\b", re.IGNORECASE)


class Versions(NamedTuple):
    """The indices of a ranking in their new order, the traces that hold no longer, and the tokens that the model ran."""

    order: Sequence[int]
    replaced: tuple[Trace, ...]
    tokens: float


def current_first(
    lm: "LanguageModel", query: Query, ranking: Sequence[Trace], scores: Sequence[float], decoding: "Decoding" = "short"
) -> Versions:
    """Put the statement that holds first, and behind the others what it replaced; of what was so before, the last statement that says
    otherwise.

    Args:
        ranking: traces, best first.
        scores: theirs, sums of standardised channels; fewer where the rest was not scored.
        decoding: how the model is asked.
    """
    unchanged = Versions(range(len(ranking)), (), 0.0)
    top = max(scores, default=0.0)
    near = [rank for rank, score in enumerate(scores[: len(ranking)]) if score >= top - FAR and _is_statement(ranking[rank])][:READ]
    if len(near) < 2 or near[0]:
        return unchanged
    margins, answers, tokens = _read_alone(lm, query, [ranking[rank].text for rank in near], decoding)
    answering = [
        (ranking[rank].time, ranking[rank].id, rank, answer)
        for rank, margin, answer in zip(near, margins, answers, strict=True)
        if margin + top - scores[rank] <= LIMIT
    ]
    if not answering:
        return unchanged._replace(tokens=tokens)
    *earlier, (*_, chosen, last) = sorted(answering)
    others = [rank for *_, rank, answer in earlier if answer != last]
    if FORMER.search(query.text) and others:
        chosen, replaced = others[-1], []
    else:
        replaced = others
    kept = [rank for rank in range(len(ranking)) if rank != chosen and rank not in replaced]
    return Versions([chosen, *kept[:READ], *replaced, *kept[READ:]], tuple(ranking[rank] for rank in replaced), tokens)


def _is_statement(trace: Trace) -> bool:
    return len(sentences(trace.text)) == 1


def _read_alone(lm: "LanguageModel", query: Query, texts: Sequence[str], decoding: "Decoding") -> tuple[list[float], list[str], float]:
    """Of each text alone: the margin for "unknown" (nats), what the model answers, and the tokens of all."""
    from hippo_core.models.generate import generate
    from hippo_core.models.prompt import render, stops

    prompts = [render(lm, [text], query.text, decoding) for text in texts]
    read = generate(lm, prompts, query.room, stop=stops(lm, decoding))
    return (
        [one.unknown_margin for one in read],
        [one.text.strip().lower() for one in read],
        sum(one.computed_tokens + one.generated_tokens for one in read),
    )

"""Which of several versions of a fact holds: what a ranking brings first is exchanged for the statement that replaced it.

A statement is replaced by the last one that says all that the question asks for in nearly the same words (ranking.py), and this one by what
holds of the same matter of a name in the question, as the fitted reader has it (statement_reader.py). Statements are compared only where
they share half of their words, and a text of several sentences is no statement: it stays.
"""

from collections import Counter
from collections.abc import Sequence

from hippo_core.methods.relational.path_search import PathSearch
from hippo_core.methods.relational.statement_reader import fitted_reader
from hippo_core.retrieval.lexicon import grams, sentences, words
from hippo_core.retrieval.ranking import supersedes
from hippo_core.store.trace import Trace

AMONG = 20  # of the best statements, versions are looked for
LIKE = 0.25  # how much a statement looks as if a later one replaced it, at least, to be replaced by it: half of its n-grams, squared
SHARED = 0.5  # of the words of the shorter one, at least, that two versions share; words of most statements count for none


def current_first(question: str, ranking: Sequence[Trace], count: int, device: str = "cpu") -> tuple[list[int], tuple[Trace, ...]]:
    """Put what holds before what it replaced.

    Args:
        ranking: traces, best first.
        count: how many of the best are exchanged for what replaced them.

    Returns:
        The indices of the ranking in their new order, and the replaced traces. LabError where MiniLM or what was fitted of it is missing.
    """
    among = range(min(AMONG, len(ranking)))
    best = _versions([ranking[index].text for index in among], count)
    if not best:
        return list(range(len(ranking))), ()
    best.sort(key=lambda index: (ranking[index].time, ranking[index].id))
    texts = [ranking[index].text for index in best]
    search = PathSearch(fitted_reader(device), texts)
    asked = search.asked(question)
    former = any(asked_hop.before for asked_hop, _ in asked[:1])
    first: list[int] = []
    replaced: list[int] = []
    for index in among:
        if len(first) == count:
            break
        if index in first or index in replaced:
            continue
        now, lost = index, dict[int, None]()
        if index in best:
            number = best.index(index)
            number, older = (number, ()) if former else _by_words(question, texts, number)
            number, read = search.standing(asked, number)
            now, lost = best[number], dict.fromkeys((*older, *read))
        first += [now] if now not in first else []
        replaced += [best[number] for number in lost if best[number] not in (*first, *replaced)]
    others = [index for index in among if index not in first and index not in replaced]
    return [*first, *others, *replaced, *range(len(among), len(ranking))], tuple(ranking[index] for index in replaced)


def _by_words(question: str, texts: Sequence[str], number: int) -> tuple[int, tuple[int, ...]]:
    """The last statement that looks as if it replaced this one, and those in between; texts in order of telling."""
    cue, fact = frozenset(grams(question)), frozenset(grams(texts[number]))
    later = [index for index in range(number + 1, len(texts)) if supersedes(cue, fact, frozenset(grams(texts[index]))) >= LIKE]
    return (later[-1], (number, *later[:-1])) if later else (number, ())


def _versions(texts: Sequence[str], count: int) -> list[int]:
    """The indices of statements that may be versions of one of the first `count`, and of these; none where there are no others."""
    words_of = {index: set(words(text)) for index, text in enumerate(texts) if len(sentences(text)) == 1}
    counts = Counter(word for own in words_of.values() for word in own)
    own = {index: {word for word in own_words if counts[word] <= max(2, len(words_of) / 2)} for index, own_words in words_of.items()}
    pairs = [(a, b) for a in list(own)[:count] for b in own if a != b]
    similar = [(a, b) for a, b in pairs if len(own[a] & own[b]) >= max(1, SHARED * min(len(own[a]), len(own[b])))]
    return sorted({index for pair in similar for index in pair})

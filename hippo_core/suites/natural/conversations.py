"""Long conversations that people published, with the utterances that answer each question; as chunks of so many utterances they are worlds.

A chunk never crosses a session. What is searched is its text; what is counted are its utterances.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from hippo_core.files import LabError
from hippo_core.suites.natural.passages import RUNG
from hippo_core.suites.types import Fact, Item, World


@dataclass(frozen=True, slots=True)
class Utterance:
    """What somebody said: `date` is that of its session, as the file has it."""

    id: str
    session: str
    date: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class EvidenceQuestion:
    """A question, its answer ("" where none is given) and the ids of the utterances that it rests on."""

    id: str
    category: str
    question: str
    answer: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Utterances in order, and questions about them."""

    id: str
    utterances: tuple[Utterance, ...]
    questions: tuple[EvidenceQuestion, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Utterances in a row, of one session. `text`: what is searched."""

    id: str
    utterances: tuple[str, ...]
    text: str


def chunked(conversation: Conversation, size: int, dated: bool = False, context: int = 0) -> list[Chunk]:
    """The conversation in chunks of `size` utterances.

    Args:
        dated: whether the date of the session opens the text.
        context: so many utterances before and after a chunk, of its session, are searched with it; they are not counted as its own.
    """
    if size < 1 or context < 0:
        raise LabError(f"a chunk has at least 1 utterance and 0 of context, got {size} and {context}")
    chunks = []
    for _, group in groupby(conversation.utterances, key=lambda one: one.session):
        session = list(group)
        for start in range(0, len(session), size):
            own = session[start : start + size]
            searched = session[max(0, start - context) : start + size + context]
            lines = [f"{one.speaker}: {one.text}" for one in searched]
            text = " ".join([f"({own[0].date})", *lines] if dated and own[0].date else lines)
            chunks.append(Chunk(f"{conversation.id}/{own[0].id}", tuple(one.id for one in own), text))
    return chunks


def world_of(conversation: Conversation, chunks: Sequence[Chunk]) -> World:
    """A conversation's chunks as facts in order, its questions as items; gold is each chunk with an utterance of the evidence."""
    holder = {name: chunk.id for chunk in chunks for name in chunk.utterances}
    facts = [
        Fact(chunk.id, conversation.id, chunk.text, {}, time, context_key=chunk.id.partition("/")[2], provenance="conversation")
        for time, chunk in enumerate(chunks)
    ]
    taught, items = tuple(fact.id for fact in facts), []
    for one in conversation.questions:
        gold = tuple(dict.fromkeys(holder[name] for name in one.evidence))
        slices = () if gold else ("no_gold",)
        items.append(
            Item(one.id, conversation.id, one.question, (one.answer or "unknown",), gold, one.category, RUNG, max(1, len(gold)),
                 taught=taught, slices=slices)  # fmt: skip
        )
    return World(conversation.id, tuple(facts), tuple(items))


def check(conversation: Conversation, where: str) -> Conversation:
    """The conversation. LabError where ids overlap, an utterance has no speaker, or evidence names no utterance."""
    seen: set[str] = set()
    for one in conversation.utterances:
        if one.id in seen:
            raise LabError(f"{where}: {conversation.id} has two utterances {one.id}; ids must differ")
        if not one.speaker.strip():
            raise LabError(f"{where}: {conversation.id}, utterance {one.id} has no speaker")
        seen.add(one.id)
    for question in conversation.questions:
        if strange := [name for name in question.evidence if name not in seen]:
            raise LabError(f"{where}: {question.id} rests on {strange[0]}, which {conversation.id} does not have")
    return conversation


def read_conversations(path: Path, corrections: Sequence[Path] = ()) -> list[Conversation]:
    """The conversations of a file of LoCoMo's or LongMemEval's format. `corrections`: lists of wrong questions of LoCoMo."""
    import json

    from hippo_core.suites.natural import locomo, longmemeval

    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"no such file: {path}") from None
    except ValueError as error:
        raise LabError(f"{path} is no JSON: {error}") from None
    values = values if isinstance(values, list) else [values]
    for module in (locomo, longmemeval):
        if values and all(isinstance(one, dict) and module.KEYS <= one.keys() for one in values):
            return list(_parsed(module, values, str(path), corrections))
    raise LabError(
        f"{path}: expected a list of objects with {', '.join(sorted(locomo.KEYS))} (LoCoMo) or {', '.join(sorted(longmemeval.KEYS))} "
        "(LongMemEval)"
    )


def _parsed(module: object, values: Sequence[dict], where: str, corrections: Sequence[Path]) -> Iterator[Conversation]:
    from hippo_core.suites.natural import locomo, longmemeval

    if module is longmemeval:
        if corrections:
            raise LabError("the list of wrong questions is one of LoCoMo's; LongMemEval has none")
        yield from longmemeval.parse(values, where)
    else:
        yield from locomo.parse(values, where, locomo.read_corrections(corrections))

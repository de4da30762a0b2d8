"""A dialogue in chunks of so many turns, as a world: what is searched is a chunk's text, what is counted are its turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.suites.types import Fact, Item, World


@dataclass(frozen=True, slots=True)
class Chunk:
    """Turns in a row, of one session. `text`: what is searched; `words`: how many the turns themselves have."""

    id: str
    turns: tuple[str, ...]
    text: str
    words: int


def chunked(dialogue: Dialogue, size: int, dated: bool = False, context: int = 0) -> list[Chunk]:
    """The dialogue in chunks of `size` turns; none crosses a session.

    Args:
        dated: whether the date of the session opens the text.
        context: so many turns before and after a chunk, of its session, are searched with it; they are not counted as its own.
    """
    chunks = []
    for _, group in groupby(dialogue.turns, key=lambda turn: turn.session):
        session = list(group)
        for start in range(0, len(session), size):
            own, searched = session[start : start + size], session[max(0, start - context) : start + size + context]
            lines = [turn.line for turn in searched]
            text = " ".join([f"({own[0].date})", *lines] if dated and own[0].date else lines)
            words = sum(len(turn.line.split()) for turn in own)
            chunks.append(Chunk(f"{dialogue.id}/{own[0].id}", tuple(turn.id for turn in own), text, words))
    return chunks


def world_of(dialogue: Dialogue, chunks: Sequence[Chunk]) -> World:
    """A dialogue's chunks as facts in order, its questions as items; gold is each chunk with a turn of the evidence."""
    holder = {turn: chunk.id for chunk in chunks for turn in chunk.turns}
    facts = tuple(Fact(chunk.id, dialogue.id, chunk.text, {}, time, provenance="conversation") for time, chunk in enumerate(chunks))
    taught = tuple(fact.id for fact in facts)
    items = []
    for asked in dialogue.questions:
        gold = tuple(dict.fromkeys(holder[turn] for turn in asked.evidence))
        slices = () if gold else ("no_gold",)
        items.append(
            Item(
                asked.id,
                dialogue.id,
                asked.question,
                (asked.answer or "unknown",),
                gold,
                asked.kind,
                "natural",
                taught=taught,
                slices=slices,
            )
        )
    return World(dialogue.id, facts, tuple(items))

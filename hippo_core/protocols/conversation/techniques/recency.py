"""recency: the last turns, as a chat window keeps them."""

from hippo_core.protocols.conversation.budget import Room
from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.techniques.base import Choose, Chosen, Technique, TurnQuery, turns_of


class Recency(Technique):
    """Shows the newest turns."""

    name = "recency"

    def open(self, dialogue: Dialogue) -> Choose:
        def choose(asked: TurnQuery, room: Room) -> Chosen:
            return turns_of(dialogue, newest(room, range(len(dialogue.turns))))

        return choose


def newest(room: Room, places: range) -> tuple[int, ...]:
    """The longest row of turns up to the last that has room."""
    for first in places:
        row = places[first - places.start :]
        if len(room.fill(reversed(row))) == len(row):
            return tuple(row)
    return ()

"""compression: every turn in fewer words, its names, numbers and content words kept in order, from the last turn back."""

from hippo_core.live.answer import FUNCTION_WORDS
from hippo_core.protocols.conversation.budget import Room
from hippo_core.protocols.conversation.dialogue import Dialogue, Turn
from hippo_core.protocols.conversation.entities import OPENERS
from hippo_core.protocols.conversation.techniques.base import Choose, Chosen, Technique, TurnQuery


class Compression(Technique):
    """Shows the newest turns without function words; turns without any other word are left out."""

    name = "compression"

    def open(self, dialogue: Dialogue) -> Choose:
        lines = {place: line for place, turn in enumerate(dialogue.turns) if (line := compressed(turn))}

        def choose(asked: TurnQuery, room: Room) -> Chosen:
            places = room.fill_lines(lines, sorted(lines, reverse=True))
            return Chosen(tuple(lines[place] for place in places), places)

        return choose


def compressed(turn: Turn) -> str:
    """The turn's line with its content words alone; "" where it has none."""
    words = [word for word in turn.text.split() if word.strip(".,:;!?").lower() not in FUNCTION_WORDS | OPENERS]
    return f"{turn.speaker}: {' '.join(words)}" if words else ""

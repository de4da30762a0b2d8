"""pruning: turns that say nothing are dropped (greetings, fillers, what is shorter than LEAST content words); of the others the last."""

from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.entities import content, names
from hippo_core.protocols.conversation.techniques.base import Choose, Technique, turns_of

LEAST = 3


class Pruning(Technique):
    """Shows the newest turns that have a name or a number in them and at least LEAST content words."""

    name = "pruning"

    def open(self, dialogue: Dialogue) -> Choose:
        told = [place for place, turn in enumerate(dialogue.turns) if len(content(turn.text)) >= LEAST and names(turn.text)]
        return lambda asked, room: turns_of(dialogue, room.fill(reversed(told)))

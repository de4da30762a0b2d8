"""full: the whole dialogue whatever the budget; of what the model's limit does not hold, the oldest turns go."""

from hippo_core.protocols.conversation.budget import Room
from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.techniques.base import Choose, Chosen, Technique, TurnQuery, turns_of


class Full(Technique):
    """Shows every turn."""

    name = "full"

    def open(self, dialogue: Dialogue) -> Choose:
        def choose(asked: TurnQuery, room: Room) -> Chosen:
            return turns_of(dialogue, range(len(dialogue.turns)))

        return choose

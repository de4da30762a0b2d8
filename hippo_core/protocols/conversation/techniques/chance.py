"""random: turns drawn by the seed, for each question anew, in their order."""

from random import Random

from hippo_core.protocols.conversation.budget import Room
from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.techniques.base import Choose, Chosen, Technique, TurnQuery, turns_of


class Chance(Technique):
    """Shows a random sample of the turns."""

    name = "random"

    def open(self, dialogue: Dialogue) -> Choose:
        def choose(asked: TurnQuery, room: Room) -> Chosen:
            order = list(range(len(dialogue.turns)))
            Random(f"{self.setting.seed}/{dialogue.id}/{asked.key}/{asked.text}").shuffle(order)
            return turns_of(dialogue, room.fill(order))

        return choose

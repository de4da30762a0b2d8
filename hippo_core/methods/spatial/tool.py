"""The map as a tool: three calls whose result is text that a model copies, in the wording of told routes and statements.

spatial = SpatialTool(["The well is north of the mill.", "The barn lies east of the well."])
spatial.plan("mill", "barn")                        # The barn walk goes from the mill: north, east.
spatial.read("well")                                # The mill is south of the well. The barn is east of the well.
spatial.write("The lane between the mill and the well is closed.")
spatial.plan("mill", "barn")                        # The barn walk goes from the mill: none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.reading import Barrier, Link, mark
from hippo_core.methods.spatial.settings import SpatialSection
from hippo_core.spoken import MOVES

if TYPE_CHECKING:
    from hippo_core.methods.spatial.learned import PlaceReader


class SpatialTool:
    """What `plan`, `read` and `write` answer on the map of these statements. `reader`: the fitted one (`learned.fitted_places`); None:
    patterns read."""

    def __init__(self, texts: Sequence[str] = (), settings: SpatialSection | None = None, reader: "PlaceReader | None" = None) -> None:
        self.atlas = MapAnswerer(texts, settings, reader=reader)

    def plan(self, start: str, goal: str) -> str:
        """A best way between two places, in the wording of a told route; "none" where what led there is closed, "stay" to where one is."""
        reply = self.atlas.route(self._noun(start), self._noun(goal))
        if reply:
            return reply.sentence
        return self._unknown(start, goal) or f"No way from the {start.removeprefix('the ')} to the {goal.removeprefix('the ')} was told."

    def read(self, place: str) -> str:
        """What lies around a place, a sentence each."""
        atlas = self.atlas
        here = atlas.map.find(self._noun(place))
        if here is None:
            return self._unknown(place)
        around = [(atlas.called(near), word if word in MOVES else "") for word, near in atlas.map.steps[here].items()]
        return " ".join(f"T{_lies(place, word, near)[1:]}." for near, word in around) or f"Nothing leads away from the {place}."

    def write(self, text: str) -> str:
        """Remember a statement; what is read from it."""
        observation = self.atlas.write(text)
        names = self.atlas.names
        if isinstance(observation, Link):
            a, b = (names.get(label, label) for label in (observation.origin, observation.goal))
            tells = f"the way from the {a} to the {b} is closed" if observation.closed else _lies(a, observation.word, b)
            return f"Remembered: {tells}."
        if isinstance(observation, Barrier):
            return f"Remembered: the {names.get(observation.place, observation.place)} is closed to the {observation.word}."
        return "Remembered." if observation else "Nothing of places is read from this."

    def _noun(self, name: str) -> str:
        """A place's name as the map has it."""
        return mark(f"the {name.removeprefix('the ')}", self.atlas.names).removeprefix("the ").lower()

    def _unknown(self, *names: str) -> str:
        unknown = next((name.removeprefix("the ") for name in names if self.atlas.map.find(self._noun(name)) is None), "")
        return f"The {unknown} is not known." if unknown else ""


def _lies(a: str, word: str, b: str) -> str:
    return f"the {b} is {word} of the {a}" if word else f"the {a} and the {b} are linked"

"""Scoring a spoken path by walking it on the true map, not by comparing strings."""

import math
import re

from hippo_core.suites.spatial.map import MOVES, read_map
from hippo_core.suites.types import Item, PathScore, World

PATH_KINDS = ("grid_path", "graph_path", "procedure")
# Words that say nothing about the way. Any other word that is no step makes the answer something else than a path.
FILLER = frozenset((
    "a", "and", "at", "by", "first", "finally", "from", "go", "goes", "going", "head", "heads", "last", "lastly", "next", "one", "step",
    "steps", "the", "then", "through", "to", "via", "walk",
))  # fmt: skip


def read_steps(spoken: str, words: frozenset[str]) -> list[str] | None:
    """The steps named in a text, in order: `words` are the possible ones; commas, case and FILLER do not count.

    None where another word occurs, or no step at all.
    """
    tokens = re.findall(r"\w+", spoken.lower())
    if any(token not in words and token not in FILLER for token in tokens):
        return None
    return [token for token in tokens if token in words] or None


def score_path(world: World, item: Item, prediction: str) -> PathScore | None:
    """How the predicted path does on the world's map; None for items whose answer is no path.

    A path succeeds when every step is legal and the last one ends on the goal; a procedure when its steps are exactly the taught
    ones. suboptimality = steps / steps of a shortest route (for a procedure 1), NaN without success. On a graph the start may be
    named first.
    """
    if item.kind not in PATH_KINDS:
        return None
    true_map = read_map(world.facts)
    words = frozenset(MOVES) if true_map.is_grid else frozenset(true_map.places)
    start = item.cue["from"]
    steps = read_steps(prediction, words)
    if steps and not true_map.is_grid and steps[0] == start:
        steps = steps[1:]
    if not steps:
        return PathScore(0.0, math.nan)
    if item.kind == "procedure":
        return PathScore(1.0, 1.0) if steps == read_steps(item.answers[0], words) else PathScore(0.0, math.nan)
    passed = true_map.walk(start, steps)
    if passed is None or passed[-1] != item.cue["to"]:
        return PathScore(0.0, math.nan)
    return PathScore(1.0, len(steps) / true_map.distances[start][item.cue["to"]])

"""Scoring a predicted path by walking it on the true map, not by comparing strings."""

import math
import re

from hippo_core.spoken import MOVES, NO_PATH
from hippo_core.suites.spatial.map import Map, read_links, read_map
from hippo_core.suites.spatial.words import EDGE_LABELS
from hippo_core.suites.types import Item, PathScore, World
from hippo_core.suites.unanswerable import UNANSWERABLE, UNKNOWN

PATH_KINDS = ("grid_path", "graph_path", "procedure")
# Words that do not matter in a path. Any other word that is no step makes the answer no path.
FILLER = frozenset((
    "a", "and", "at", "by", "first", "finally", "from", "go", "goes", "going", "head", "heads", "last", "lastly", "next", "one", "step",
    "steps", "the", "then", "through", "to", "via", "walk",
))  # fmt: skip

EDGE_LABEL_WORDS = frozenset(EDGE_LABELS) | frozenset(EDGE_LABELS.values())


def read_steps(spoken: str, steps: frozenset[str], filler: frozenset[str] = FILLER) -> list[str] | None:
    """The `steps` named in a text, in order; commas, case and filler do not count. None where another word occurs, or no step."""
    tokens = re.findall(r"\w+", spoken.lower())
    if any(token not in steps and token not in filler for token in tokens):
        return None
    return [token for token in tokens if token in steps] or None


def score_path(world: World, item: Item, prediction: str) -> PathScore | None:
    """How the predicted path does on the world's map; None for items whose answer is no path.

    A path succeeds when every step is legal and the last one ends on the goal; a procedure when its steps are exactly the taught
    ones. suboptimality = steps / steps of a shortest route (for a procedure 1), NaN without success. On a graph the start may be
    named first. For a goal out of reach the answer is "none" or "no path", for an unanswerable item "unknown". Where links have labels,
    these may stand beside the steps or replace them.
    """
    if item.kind not in PATH_KINDS:
        return None
    if UNANSWERABLE in item.slices:
        return PathScore(float(prediction.lower().strip(" .\n") == UNKNOWN), math.nan)
    true_map, start, goal = true_path(world, item)
    steps = _spoken_steps(true_map, start, item, prediction)
    if item.kind == "procedure":
        right = steps and steps == read_steps(item.answers[0], frozenset(MOVES) if true_map.is_grid else frozenset(true_map.places))
        return PathScore(1.0, 1.0) if right else PathScore(0.0, math.nan)
    if math.isinf(true_map.distances[start][goal]):
        return PathScore(float(prediction.lower().strip(" .") in NO_PATH), math.nan)
    passed = true_map.walk(start, steps) if steps else walk_edge_labels(item, prediction)
    if passed is None or passed[-1] != goal:
        return PathScore(0.0, math.nan)
    return PathScore(1.0, (len(passed) - 1) / true_map.distances[start][goal])


def localisation_error(world: World, item: Item, prediction: str) -> float:
    """How many steps of the true map lie between the right place and the answered one: where a walker is, or where a route ends, of which
    the first step that cannot be taken is the last. An answer that is no place or no step stays at the start. NaN of other kinds."""
    if UNANSWERABLE in item.slices or item.kind not in ("trajectory", "grid_path", "graph_path"):
        return math.nan
    true_map, here, goal = true_path(world, item)
    if item.kind == "trajectory":
        place, goal = prediction.lower().strip(" .\n").removeprefix("the "), item.answers[0]
        here = place if place in true_map.steps else here
    else:
        for step in _spoken_steps(true_map, here, item, prediction) or ():
            if step not in true_map.steps[here]:
                break
            here = true_map.steps[here][step]
    off = true_map.distances[here][goal]
    return off if math.isfinite(off) else math.nan


def _spoken_steps(true_map: Map, start: str, item: Item, prediction: str) -> list[str] | None:
    """The steps of an answer; on a graph without the start, which may be named first."""
    words = frozenset(MOVES) if true_map.is_grid else frozenset(true_map.places)
    steps = read_steps(prediction, words, FILLER | EDGE_LABEL_WORDS if "ways" in item.truth else FILLER)
    return steps[1:] if steps and not true_map.is_grid and steps[0] == start else steps


def true_path(world: World, item: Item) -> tuple[Map, str, str]:
    """The true map, and the start and the goal of a path on it: from the item's truth, else from the facts."""
    if item.truth:
        return read_links(item.truth["links"], item.kind == "grid_path"), item.truth["from"], item.truth["to"]
    return read_map(world.facts), item.cue["from"], item.cue.get("to", "")


def walk_edge_labels(item: Item, spoken: str) -> list[str] | None:
    """The places of a path that is given as the labels of its links ("over the footbridge, along the towpath")."""
    labels = read_steps(spoken, frozenset(EDGE_LABELS), FILLER | EDGE_LABEL_WORDS) if "ways" in item.truth else None
    return read_links(item.truth["ways"], is_grid=False).walk(item.truth["from"], labels) if labels else None

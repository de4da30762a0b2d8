"""The words of the spatial suite (words.yaml): labels of places, objects, obstacles, procedures, and forms of facts and questions."""

from collections.abc import Sequence
from itertools import permutations, product

from hippo_core.files import tables

TABLES = tables(__file__)
PLACES: tuple[str, ...] = TABLES["places"]
OBJECTS: tuple[str, ...] = TABLES["objects"]
OBSTACLES: tuple[str, ...] = TABLES["obstacles"]
PROCEDURES = tuple(map(" ".join, product(*TABLES["procedures"])))
VERBS: tuple[str, ...] = TABLES["verbs"]
EDGE_LABELS: dict[str, str] = TABLES["ways"]
FORMS: dict[str, tuple[str, ...]] = TABLES["forms"]
QUESTIONS: dict[str, tuple[str, ...]] = TABLES["questions"]
HELD_OUT_QUESTIONS: dict[str, str] = TABLES["held_out_questions"]


def edge_phrase(noun: str) -> str:
    """An edge label with its preposition: "over the footbridge"."""
    return f"{EDGE_LABELS[noun]} the {noun}"


def in_any_order(nouns: Sequence[str]) -> tuple[str, ...]:
    """The words in each order, with commas, then as one says them."""
    orders = list(permutations(nouns))
    return (*map(", ".join, orders), *map(listed, orders))


def listed(nouns: Sequence[str]) -> str:
    """The words as one says them in a row: "north, east and west"."""
    return " and ".join(filter(None, [", ".join(nouns[:-1]), *nouns[-1:]]))

"""Directions and numbers as they are spoken: the one table of moves that suites, memories and scores share, and nouns that are counted.

It imports nothing."""

MOVES = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}  # (row, column); row 0 is the northernmost
NO_PATH = ("none", "no path")  # to a goal that no way leads to; small models copy the first word and not the second
NO_STEPS = "stay"  # to where one is
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip


def number_of(number: int, noun: str) -> str:
    """A number and its noun: 1 world, 1,200 worlds. The noun takes an s."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")

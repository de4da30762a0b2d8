"""Noise on a cue: words of a text lost or misspelt, as when something is half remembered."""

from random import Random


def corrupt(text: str, level: float, random: Random) -> str:
    """The text with each word, with probability `level`, dropped or misspelt (a letter lost, or two neighbours swapped), half and half.

    A word of up to two letters can only be dropped, and where all others are gone the last word stays as it is.
    """
    words = text.split()
    kept: list[str] = []
    for number, word in enumerate(words):
        if random.random() >= level:
            kept.append(word)
        elif len(word) > 2 and random.random() < 0.5:
            kept.append(misspelt(word, random))
        elif not kept and number == len(words) - 1:
            kept.append(word)
    return " ".join(kept)


def misspelt(word: str, random: Random) -> str:
    """A letter lost, or two neighbours swapped."""
    place = random.randrange(len(word) - 1)
    swapped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return swapped if random.random() < 0.5 else word[:place] + word[place + 1 :]

"""Noise on a cue: words of a text lost or misspelt, as when something is half remembered."""

from random import Random


def corrupt(text: str, level: float, random: Random) -> str:
    """The text with each word, with probability `level`, dropped or misspelt (a letter lost, or two neighbours swapped), half and half.

    A word of up to two letters can only be dropped, and where all others are gone the last word stays as it is.
    """
    words = text.split()
    words_left: list[str] = []
    for number, word in enumerate(words):
        if random.random() >= level:
            words_left.append(word)
        elif len(word) > 2 and random.random() < 0.5:
            words_left.append(misspelt(word, random))
        elif not words_left and number == len(words) - 1:
            words_left.append(word)
    return " ".join(words_left)


def misspelt(word: str, random: Random) -> str:
    """A letter lost, or two neighbours swapped."""
    index = random.randrange(len(word) - 1)
    swapped = word[:index] + word[index + 1] + word[index] + word[index + 2 :]
    return swapped if random.random() < 0.5 else word[:index] + word[index + 1 :]

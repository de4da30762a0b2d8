"""A question's parts from its name outward, matched in order to the statements of a path.

    Which river runs by | the place where | the football team of | the music teacher of | Anna | trains?

What describes the next thing stands around what describes the last one. So of the statements on a path the first says what the parts next
to the name say, and the last what the outermost say; each statement gets parts in a row, and no part is left out. Words and texts are
compared by spelling (`TextSimilarity`), and with an encoder by meaning (`Meaning`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from hippo_core.methods.relational.mentions import Mention
from hippo_core.retrieval.lexicon import grams

FAR = 0.5  # cosine of two words that have nothing to do with each other


def spelling(word: str, other: str) -> float:
    """The Dice coefficient of the words' character n-grams."""
    if word == other:
        return 1.0
    a, b = set(grams(word)), set(grams(other))
    return 2 * len(a & b) / (len(a) + len(b)) if a and b else 0.0


class TextSimilarity:
    """By spelling alone."""

    def words(self, asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        """The similarity of each asked word to each known one, 0 to 1, [Q, W]."""
        return np.array([[spelling(word, other) for other in known] for word in asked]).reshape(len(asked), len(known))

    def texts(self, asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        """The similarity of each asked text to each known one, up to 1, [Q, N]."""
        return self.words(asked, known)


class Meaning(TextSimilarity):
    """By MiniLM's cosine; of words, where it counts from `FAR` on, the larger one of that and the spelling. Vectors are kept."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._vectors: dict[str, np.ndarray] = {}

    def words(self, asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        return np.maximum(super().words(asked, known), np.clip((self.texts(asked, known) - FAR) / (1 - FAR), 0, 1))

    def texts(self, asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        if not (asked and known):
            return np.zeros((len(asked), len(known)))
        return self._encoded(asked) @ self._encoded(known).T

    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        from hippo_core.models import minilm

        if new := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._vectors.update(zip(new, minilm.encode(new, self.device).cpu().numpy(), strict=True))
        return np.stack([self._vectors[text] for text in texts])


CUT = re.compile(r"\s+(?=(?:the|a|an|which|what|who|whom|whose|where|when|that)\b)", re.IGNORECASE)
JUST = re.compile(r"(?:who|what|where|which) (?:is|are|was|were)", re.IGNORECASE)
SOMETHING = "something"  # in the place of a name
NONE = -1e9


class Clauses:
    """How well the parts of a question, from one of its names outward, match statements.

    A state is how many parts before the name are used up, and whether what stands behind it is; `end` is the one where all is. `hops`: how
    many statements the parts ask for. `named`: the name where it begins, one of `names`.
    """

    def __init__(self, question: str, named: Mention, names: Sequence[Mention], similarity: TextSimilarity) -> None:
        self.similarity = similarity
        before = [part for part in CUT.split(blank(question, names, 0, named.start)) if part][::-1]
        behind = re.sub(r"^['’]s?\b", "", blank(question, names, named.end, len(question))).strip(" ?.!")
        self.hops = hops_of(before)
        self.size = 2 * (len(before) + 1)
        self.end = self.size - (1 if behind else 2)
        self.steps: list[tuple[int, int, int]] = []  # from a state to another, by a text
        texts: dict[str, int] = {}
        for first in range(len(before) + 1):
            for last in range(first, len(before) + 1):
                for used, then in ((0, 0), (0, 1), (1, 1)):
                    parts = [*before[first:last][::-1], *([behind] if then > used else [])]
                    if text := " ".join(part for part in parts if part):
                        number = texts.setdefault(f"{text} {SOMETHING}", len(texts))
                        self.steps.append((2 * first + used, 2 * last + then, number))
        self.texts = list(texts)
        self._tables: dict[int, np.ndarray] = {}

    def compare(self, remainders: Mapping[int, str]) -> None:
        """Compare the parts with these statements in one batch; `remainders`: the statements' texts without names, by number."""
        new = [number for number in remainders if number not in self._tables]
        if not new:
            return
        similarities = self.similarity.texts(self.texts, [remainders[number] for number in new])
        for column, number in enumerate(new):
            table = self._tables[number] = np.full((self.size, self.size), NONE)
            for state, following, text in self.steps:
                table[state, following] = similarities[text, column]

    def begin(self) -> np.ndarray:
        """The worth of each state before the first statement, [S]."""
        return np.array([0.0, *[NONE] * (self.size - 1)])

    def after(self, worth: np.ndarray, statement: int) -> np.ndarray:
        """The worth of each state after one more statement, compared before, [S]."""
        return (worth[:, None] + self._tables[statement]).max(0)

    def shares(self, statements: Sequence[int]) -> list[tuple[int, int]]:
        """Which parts each of these statements gets, as the states before and after it, where all of them are worth most."""
        worths = [self.begin()]
        for statement in statements:
            worths.append(self.after(worths[-1], statement))
        states = [self.end]
        for statement, worth in zip(reversed(statements), reversed(worths[:-1]), strict=True):
            states.append(int((worth + self._tables[statement][:, states[-1]]).argmax()))
        return [*zip(states[:0:-1], states[-2::-1], strict=True)]

    def says(self, statement: int, share: tuple[int, int]) -> float:
        """How well these parts match a statement, compared before."""
        return float(self._tables[statement][share])


def hops_of(parts: Sequence[str]) -> int:
    """How many statements a question's parts, outermost last, ask for: one for each thing that is described, and one for what is asked of
    the last of them, unless that is just what it is."""
    described = sum(part.lower().startswith("the ") for part in parts)
    return max(1, described + (not described or not JUST.fullmatch(parts[-1])))


def blank(text: str, names: Iterable[Mention], start: int, end: int, word: str = "") -> str:
    """A part of a text without its names, `word` in the place of each."""
    pieces, at = [], start
    for name in sorted((name for name in names if start <= name.start and name.end <= end), key=lambda name: name.start):
        pieces += [text[at : name.start], word]
        at = name.end
    return " ".join("".join([*pieces, text[at:end]]).split())

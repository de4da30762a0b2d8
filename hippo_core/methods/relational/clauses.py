"""A question's parts from its name outward, matched in order to the statements of a path.

    Which river runs by | the place where | the football team of | the music teacher of | Anna | trains?

What describes the next thing stands around what describes the last one. So of the statements on a path the first is what the parts next to
the name say, and the last what the outermost say; each statement gets parts in a row, and no part is left out.
"""

import re, os
from collections.abc import Sequence

import numpy as np

from hippo_core.methods.relational.likeness import Likeness
from hippo_core.methods.relational.mentions import Mention

CUT = re.compile(r"\s+(?=(?:the|a|an|which|what|who|whom|whose|where|when|that)\b)", re.IGNORECASE)
JUST = re.compile(r"(?:who|what|where|which) (?:is|are|was|were)", re.IGNORECASE)
NONE = -1e9


class Clauses:
    """How well the parts of a question, from one of its names outward, say what statements say.

    A state is how many parts before the name are used up, and whether what stands behind it is: `end` is the one where all is.

    Args:
        question: its text.
        named: the name where it begins.
        others: all of its names.
        remainders: what each statement says without its names.
        alike: how alike texts are.
        chance: how alike texts are that have nothing to do with each other; what a part counts begins there.
    """

    def __init__(
        self, question: str, named: Mention, others: Sequence[Mention], remainders: Sequence[str], alike: Likeness, chance: float
    ) -> None:
        before = CUT.split(blank(question[: named.start], [one for one in others if one.start < named.start], 0).strip())
        before = [part for part in before if part][::-1]
        behind = blank(question[named.end :], [one for one in others if one.start >= named.end], named.end).strip(" ?.!'’")
        behind = re.sub(r"^s\b", "", behind).strip()
        self.hops = hops_of(before)
        self.parts = len(before)
        self.start, self.end = 0, self._state(self.parts, 1)
        self.size = 2 * (self.parts + 1)
        texts: dict[str, int] = {}
        steps: list[tuple[int, int, int]] = []
        for first in range(self.parts + 1):
            for last in range(first, self.parts + 1):
                for used, then in ((0, 0), (0, 1), (1, 1)):
                    text = " ".join([*before[first:last][::-1], *([behind] if then > used and behind else [])])
                    if text and os.environ.get("QB"):
                        text = text + " " + os.environ["QB"]
                    if text:
                        steps.append((self._state(first, used), self._state(last, then), texts.setdefault(text, len(texts))))
        self.texts = list(texts)
        self.list = steps
        self.ctx = {}
        self.steps = np.full((len(remainders), self.size, self.size), NONE)
        if steps and remainders:
            table = alike.texts(self.texts, remainders)
            mode = os.environ.get("MODE", "")
            if "r" in mode:
                table = table - table.mean(1, keepdims=True) + 0.2
            if "c" in mode:
                table = table - table.mean(0, keepdims=True) + 0.2
            if "z" in mode:
                table = (table - table.mean(1, keepdims=True)) / table.std(1, keepdims=True) * 0.12
            if "s" in mode:
                e = np.exp(table / 0.08)
                table = np.log(e / e.sum(1, keepdims=True)) * 0.08 + 0.3
            table = table - chance
            self.table = table
            L = os.environ.get("LEN", "")
            for state, following, text in steps:
                n = len(self.texts[text].split())
                weight = {"": 1.0, "sq": n**0.5 / 1.7, "l": n / 3}[L]
                self.steps[:, state, following] = np.maximum(self.steps[:, state, following], table[text] * weight)
        if not behind:
            self.end = self._state(self.parts, 0)

    def _state(self, used: int, behind: int) -> int:
        return 2 * used + behind

    def begin(self) -> np.ndarray:
        """The worth of each state before the first statement, [S]."""
        worth = np.full(self.size, NONE)
        worth[self.start] = 0.0
        return worth

    def after(self, worth: np.ndarray, statement: int, node: str = "", at=()) -> np.ndarray:
        """The worth of each state after one more statement, [S]."""
        B = float(os.environ.get("CTX", "0"))
        if B and len(self.list):
            key = (node, statement)
            if key not in self.ctx:
                rest = [n for n in at if n != statement]
                m = np.zeros((self.size, self.size))
                if rest:
                    f = {"mean": np.mean, "max": np.max}[os.environ.get("CTXF", "mean")]
                    v = f(self.table[:, rest], axis=1)
                    for a, b, t in self.list:
                        m[a, b] = v[t]
                self.ctx[key] = m
            return (worth[:, None] + self.steps[statement] + B * self.ctx[key]).max(0)
        return (worth[:, None] + self.steps[statement]).max(0)


def hops_of(parts: Sequence[str]) -> int:
    """How many statements a question's parts, outermost last, ask for: one for each thing that is described, and one for what is asked of
    the last of them, unless that is just what it is."""
    described = sum(part.lower().startswith("the ") for part in parts)
    return max(1, described + (not described or not JUST.fullmatch(parts[-1])))


def blank(text: str, names: Sequence[Mention], offset: int, word: str = "") -> str:
    """A text without its names."""
    for name in sorted(names, key=lambda one: -one.start):
        text = text[: name.start - offset] + word + text[name.end - offset :]
    return " ".join(text.split())

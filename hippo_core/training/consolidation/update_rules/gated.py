"""Updates that act only on questions near to what was rehearsed; every other question is the unchanged model's.

As in GRACE (Hartvigsen et al. 2023, arXiv 2211.11031, section 3) and MELO (Yu et al. 2023, arXiv 2312.11795, section 3) an edit acts near
its key: here the words of a trace and of its rehearsed questions, by the share of a question's character n-grams, weighed by their idf.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import read_object, write_json
from hippo_core.models.language_model import LanguageModel
from hippo_core.retrieval.lexicon import Lexicon, grams, words
from hippo_core.training.consolidation import retention as kept
from hippo_core.training.consolidation.update_rules.base import UpdateRule
from hippo_core.training.consolidation.update_rules.lora import LoRAUpdate

GATE = "gate.json"
LESSONS, SEED = 200, 1337  # whose questions are strangers


class InputGate:
    """The words of every trace, and the least share of a question's n-grams that one trace must have; above 1 nothing fits."""

    def __init__(self, traces: Sequence[Sequence[str]], idf: dict[str, float], unseen: float, threshold: float) -> None:
        self.traces, self.idf, self.unseen, self.threshold = traces, idf, unseen, threshold
        self.having: defaultdict[str, list[int]] = defaultdict(list)
        for number, known in enumerate(traces):
            for gram in dict.fromkeys(grams(" ".join(known))):
                self.having[gram].append(number)

    def nearness(self, question: str) -> float:
        """The largest share of the question's n-grams, weighed by their idf, that one trace has: 0 to 1."""
        return self.nearest(question)[0]

    def nearest(self, question: str) -> tuple[float, int]:
        """That share and the number of the trace that has it, the first of equals; of no trace 0 and -1."""
        shares: defaultdict[int, float] = defaultdict(float)
        total = 0.0
        for gram in dict.fromkeys(grams(question)):
            weight = self.idf.get(gram, self.unseen)
            total += weight
            for number in self.having.get(gram, ()):
                shares[number] += weight
        best = min(shares, key=lambda number: (-shares[number], number), default=-1)
        return (shares[best] / total, best) if best >= 0 else (0.0, -1)


def fitted(texts: Sequence[str], questions: Sequence[Sequence[str]], strangers: Sequence[str]) -> InputGate:
    """The gate of these texts and of the questions that were rehearsed of each. The threshold tells rehearsed questions from those of
    strangers: each trace is indexed with every other question of its own, and judged by the rest."""
    lexicon = Lexicon.of([*(" ".join((text, *own)) for text, own in zip(texts, questions, strict=True)), *strangers], grams)

    def gate(step: int, threshold: float) -> InputGate:
        traces = [sorted(set(words(" ".join((text, *own[::step]))))) for text, own in zip(texts, questions, strict=True)]
        return InputGate(traces, lexicon.idf, lexicon.unseen, threshold)

    half = gate(2, 0.0)
    near = [half.nearness(question) for own in questions for question in own[1::2]]
    return gate(1, _threshold(near, [half.nearness(question) for question in strangers]))


def _threshold(near: Sequence[float], far: Sequence[float]) -> float:
    """Where the share of `near` at or above it least the share of `far` is largest, in the middle of the gap."""
    scores = sorted({*near, *far, 1.0})
    best = max(scores, key=lambda score: _share(near, score) - _share(far, score))
    return (best + max((score for score in scores if score < best), default=best)) / 2


def _share(values: Sequence[float], least: float) -> float:
    return sum(value >= least for value in values) / max(1, len(values))


class Gated(UpdateRule):
    """An update rule behind a gate, in front of the class of what it changes. `fits` says which questions it is for."""

    no_weights = "it acts on some questions only, and weights act on all"

    def __init__(self, lm: LanguageModel, rank: int, first_block: int, **others: Any) -> None:
        super().__init__(lm, rank, first_block, **others)
        self.gate = InputGate((), {}, 1.0, 2.0)

    def prepare(self, texts: Sequence[str], questions: Sequence[Sequence[str]] = (), known: int = 0) -> None:
        super().prepare(texts, questions, known)
        lessons = kept.lessons(Random(f"gate/{SEED}"), LESSONS)
        strangers = [branch.question for lesson in lessons for branch in lesson.branches if branch.question]
        self.gate = fitted(texts, questions or [()] * len(texts), strangers)

    def fits(self, questions: Sequence[str]) -> list[bool]:
        return [self.gate.nearness(question) >= self.gate.threshold for question in questions]

    def merged(self) -> Any:
        return UpdateRule.merged(self)

    def save(self, folder: Path) -> None:
        super().save(folder)
        write_json(folder / GATE, {name: getattr(self.gate, name) for name in ("traces", "idf", "unseen", "threshold")})

    def load(self, folder: Path) -> None:
        """See `UpdateRule.load`; LabError too where the gate's file is missing or cut."""
        try:
            values = read_object(folder / GATE)
            idf = {gram: float(weight) for gram, weight in values["idf"].items()}
            traces = [list(map(str, known)) for known in values["traces"]]
            gate = InputGate(traces, idf, float(values["unseen"]), float(values["threshold"]))
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise LabError(f"{folder / GATE} cannot be read ({error!r}); consolidate again") from None
        super().load(folder)
        self.gate = gate


class GatedLoRA(Gated, LoRAUpdate):
    """`rank` is that of the updates."""

    name = "gated_lora"

"""Updates that act only on questions near to what was rehearsed; every other question is the unchanged model's.

As in GRACE (Hartvigsen et al. 2023, arXiv 2211.11031, section 3) and MELO (Yu et al. 2023, arXiv 2312.11795, section 3) an edit acts near
its key: here the words of a trace and of its rehearsed questions, by the share of a question's character n-grams, weighed by their idf.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from hippo_core.errors import LabError
from hippo_core.files import read_object, write_json
from hippo_core.models.language_model import LanguageModel
from hippo_core.retrieval.lexicon import Lexicon, grams, words
from hippo_core.training.consolidation import retention as kept
from hippo_core.training.consolidation.update_rules.lora import LoRAUpdate, beginning

T = TypeVar("T")
GATE, GROUPS = "gate.json", "groups.json"
FIRST = "default"  # peft's name of the first update
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
    strangers: each trace is indexed with every other question of its own, and judged by the rest. It lies where the share of rehearsed
    questions at or above it less the share of strangers is largest, in the middle of the gap."""
    lexicon = Lexicon.of([*(" ".join((text, *own)) for text, own in zip(texts, questions, strict=True)), *strangers], grams)

    def gate(step: int, threshold: float) -> InputGate:
        traces = [sorted(set(words(" ".join((text, *own[::step]))))) for text, own in zip(texts, questions, strict=True)]
        return InputGate(traces, lexicon.idf, lexicon.unseen, threshold)

    half = gate(2, 0.0)
    near = [half.nearness(question) for own in questions for question in own[1::2]]
    far = [half.nearness(question) for question in strangers]
    scores = sorted({*near, *far, 1.0})
    best = max(scores, key=lambda score: _share(near, score) - _share(far, score))
    return gate(1, (best + max((score for score in scores if score < best), default=best)) / 2)


def _share(values: Sequence[float], least: float) -> float:
    return sum(value >= least for value in values) / max(1, len(values))


class GatedLoRA(LoRAUpdate):
    """Low-rank updates behind a gate; `fits` says which questions they are for."""

    name = "gated_lora"

    def __init__(self, lm: LanguageModel, rank: int, first_block: int) -> None:
        super().__init__(lm, rank, first_block)
        self.gate = InputGate((), {}, 1.0, 2.0)

    def prepare(self, texts: Sequence[str], questions: Sequence[Sequence[str]] = (), known: int = 0) -> None:
        lessons = kept.lessons(Random(f"gate/{SEED}"), LESSONS)
        strangers = [branch.question for lesson in lessons for branch in lesson.branches if branch.question]
        self.gate = fitted(texts, questions or [()] * len(texts), strangers)

    def fits(self, questions: Sequence[str]) -> list[bool]:
        return [self.gate.nearness(question) >= self.gate.threshold for question in questions]

    def merged(self) -> Any:
        raise LabError(f"way {self.name} cannot be merged into weights: it acts on some questions only, and weights act on all")

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


class GatedGroups(GatedLoRA):
    """An update for each sleep, as MELO's blocks: earlier ones are not overwritten, and a question goes to the nearest sleep. The last is
    trained. `rank` is that of the updates of one sleep."""

    name = "gated_groups"
    of_groups = True

    def __init__(self, lm: LanguageModel, rank: int, first_block: int) -> None:
        super().__init__(lm, rank, first_block)
        self.updates = 1
        self.groups: list[int] = []  # of each trace of the gate the number of its update

    def prepare(self, texts: Sequence[str], questions: Sequence[Sequence[str]] = (), known: int = 0) -> None:
        super().prepare(texts, questions, known)
        if known:
            self._add()
        self.groups = [*self.groups[:known], *[self.updates - 1] * (len(texts) - known)]

    def apart(self, questions: Sequence[str], ask: Callable[[list[int]], Sequence[T]]) -> list[T]:
        nearest = [self.gate.nearest(question) for question in questions]
        groups = [self.groups[trace] if share >= self.gate.threshold else -1 for share, trace in nearest]
        answers: dict[int, T] = {}
        for group in sorted(set(groups), reverse=True):
            indices = [index for index, its in enumerate(groups) if its == group]
            with self.unchanged() if group < 0 else self._acting(group):
                answers |= zip(indices, ask(indices), strict=True)
        return [answers[index] for index in range(len(questions))]

    def save(self, folder: Path) -> None:
        super().save(folder)
        write_json(folder / GROUPS, {"groups": self.groups, "updates": self.updates})

    def load(self, folder: Path) -> None:
        """See `GatedLoRA.load`; LabError too where the file of the groups is missing or cut."""
        try:
            values = read_object(folder / GROUPS)
            groups, updates = [int(group) for group in values["groups"]], int(values["updates"])
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise LabError(f"{folder / GROUPS} cannot be read ({error!r}); consolidate again") from None
        while self.updates < updates:
            self._add()
        super().load(folder)
        if len(groups) != len(self.gate.traces) or not set(groups) <= set(range(self.updates)):
            raise LabError(f"{folder / GROUPS} does not fit the gate's {len(self.gate.traces)} traces; consolidate again")
        self.groups = groups

    def _add(self) -> None:
        """One update more, without effect yet, which acts from now on."""
        self.updates += 1
        with beginning():
            self.adapted.add_adapter(self._name(self.updates - 1), self.config)
        self._act(self.updates - 1)
        self.adapted.eval()

    def _act(self, group: int) -> None:
        self.adapted.set_adapter(self._name(group))

    @contextmanager
    def _acting(self, group: int) -> Iterator[None]:
        """A context in which the update of one sleep acts."""
        self._act(group)
        try:
            yield
        finally:
            self._act(self.updates - 1)

    @staticmethod
    def _name(group: int) -> str:
        return f"sleep_{group + 1}" if group else FIRST

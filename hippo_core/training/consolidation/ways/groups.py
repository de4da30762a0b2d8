"""A gated low-rank update for each sleep: nothing learnt before is overwritten, and a question goes to the sleep that it is nearest to.

MELO (Yu et al. 2023, arXiv 2312.11795, section 3) gives each batch of edits low-rank blocks of its own, chosen by an index of vectors; here
the index is the gate of `gated_lora`, over the traces of all sleeps.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from hippo_core.files import LabError, read_object, write_json
from hippo_core.models.language_model import LanguageModel
from hippo_core.training.consolidation.ways.gated import GatedLoRA
from hippo_core.training.consolidation.ways.lora import LAYERS, beginning

T = TypeVar("T")
GROUPS, FIRST = "groups.json", "default"


class GatedGroups(GatedLoRA):
    """`rank` is that of the updates of one sleep."""

    name = "gated_groups"

    def __init__(self, lm: LanguageModel, rank: int, first_block: int, layers: tuple[str, ...] = LAYERS) -> None:
        super().__init__(lm, rank, first_block, layers)
        self.names = [FIRST]  # of the updates, a sleep each
        self.groups: list[int] = []  # of each trace of the gate the number of its update

    def prepare(self, texts: Sequence[str], questions: Sequence[Sequence[str]] = (), known: int = 0) -> None:
        super().prepare(texts, questions, known)
        if known:
            self._add()
        self.groups = [*self.groups[:known], *[len(self.names) - 1] * (len(texts) - known)]

    def apart(self, questions: Sequence[str], ask: Callable[[list[int]], Sequence[T]]) -> list[T]:
        nearest = [self.gate.nearest(question) for question in questions]
        groups = [self.groups[trace] if share >= self.gate.threshold else -1 for share, trace in nearest]
        answers: dict[int, T] = {}
        for group in sorted(set(groups), reverse=True):
            places = [place for place, its in enumerate(groups) if its == group]
            with self.unchanged() if group < 0 else self._acting(group):
                answers |= zip(places, ask(places), strict=True)
        return [answers[place] for place in range(len(questions))]

    def save(self, folder: Path) -> None:
        super().save(folder)
        write_json(folder / GROUPS, {"groups": self.groups, "updates": len(self.names)})

    def load(self, folder: Path) -> None:
        """See `GatedLoRA.load`; LabError too where the file of the groups is missing or cut."""
        try:
            values = read_object(folder / GROUPS)
            groups, updates = [int(group) for group in values["groups"]], int(values["updates"])
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise LabError(f"{folder / GROUPS} cannot be read ({error!r}); consolidate again") from None
        while len(self.names) < updates:
            self._add()
        super().load(folder)
        if len(groups) != len(self.gate.traces) or not set(groups) <= set(range(len(self.names))):
            raise LabError(f"{folder / GROUPS} does not fit the gate's {len(self.gate.traces)} traces; consolidate again")
        self.groups = groups

    def _add(self) -> None:
        self.names.append(f"sleep_{len(self.names) + 1}")
        with beginning():
            self.adapted.add_adapter(self.names[-1], self.config)
        self.adapted.set_adapter(self.names[-1])
        self.adapted.eval()

    @contextmanager
    def _acting(self, group: int) -> Iterator[None]:
        """A context in which the update of one sleep acts."""
        self.adapted.set_adapter(self.names[group])
        try:
            yield
        finally:
            self.adapted.set_adapter(self.names[-1])

"""A gated update for each sleep: earlier updates are not overwritten, and a question goes to the nearest sleep.

Each sleep has blocks of its own as in MELO (Yu et al. 2023, arXiv 2312.11795, section 3), chosen by the gate of `gated_lora`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.files import read_object, write_json
from hippo_core.models.language_model import LanguageModel
from hippo_core.training.consolidation.update_rules.gated import Gated
from hippo_core.training.consolidation.update_rules.lora import LoRAUpdate, beginning
from hippo_core.training.consolidation.update_rules.prefix import KVPrefix

T = TypeVar("T")
GROUPS, FIRST = "groups.json", "default"


class Grouped(Gated):
    """One update a sleep, in front of the class of what they change; the last is trained."""

    def __init__(self, lm: LanguageModel, rank: int, first_block: int, **others: Any) -> None:
        super().__init__(lm, rank, first_block, **others)
        self.updates = 1
        self.groups: list[int] = []  # of each trace of the gate the number of its update

    @abstractmethod
    def add(self) -> None:
        """One update more, without effect yet, which acts from now on."""

    @abstractmethod
    def act(self, group: int) -> None:
        """Let one update act, and no other."""

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
        """See `Gated.load`; LabError too where the file of the groups is missing or cut."""
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
        self.updates += 1
        self.add()

    @contextmanager
    def _acting(self, group: int) -> Iterator[None]:
        """A context in which the update of one sleep acts."""
        self.act(group)
        try:
            yield
        finally:
            self.act(self.updates - 1)


class GatedGroups(Grouped, LoRAUpdate):
    """`rank` is that of the updates of one sleep."""

    name = "gated_groups"
    of_groups = True

    def add(self) -> None:
        with beginning():
            self.adapted.add_adapter(self._name(self.updates - 1), self.config)
        self.act(self.updates - 1)
        self.adapted.eval()

    def act(self, group: int) -> None:
        self.adapted.set_adapter(self._name(group))

    @staticmethod
    def _name(group: int) -> str:
        return f"sleep_{group + 1}" if group else FIRST


class GatedPrefixes(Grouped, KVPrefix):
    """`rank` times eight tokens a sleep, begun from what it is told: a cartridge a sleep."""

    name = "gated_prefixes"
    of_groups = True
    no_weights = KVPrefix.no_weights

    def __init__(self, lm: LanguageModel, rank: int, first_block: int) -> None:
        super().__init__(lm, rank, first_block)
        self.prefixes = [self.prefix]

    def prepare(self, texts: Sequence[str], questions: Sequence[Sequence[str]] = (), known: int = 0) -> None:
        super().prepare(texts, questions, known)
        if known:
            self.begin(texts[known:])

    def weights(self) -> dict[str, Tensor]:
        return {f"{number}.{name}": weight for number, prefix in enumerate(self.prefixes) for name, weight in prefix.named_parameters()}

    def add(self) -> None:
        self.prefixes.append(self.empty())
        self.act(self.updates - 1)

    def act(self, group: int) -> None:
        self.acting.prefix = self.prefixes[group]

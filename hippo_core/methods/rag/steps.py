"""Retrieval that asks a question with another in it step by step, as a composite of memories does, with the model's own answers.

The rival of `memory/all`: the same forms of asking (methods/self_ask.py), a rag in the place of the memories. It shows what it found
for the last question that it came to, and the model is asked that one. `k` is of every step.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pydantic import field_validator

from hippo_core.errors import LabError
from hippo_core.methods.base import Count, Method, MethodSettings, Query, Retrieve, Retrieved
from hippo_core.methods.presets import Preset, load_preset
from hippo_core.methods.rag.rankers import Rag
from hippo_core.methods.self_ask import StepAnswer, by_steps, read
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


class SelfAskSettings(MethodSettings):
    """`rag`: the preset that searches at every step; `k`: how many passages it shows."""

    rag: str = "baselines/rag_sum"
    k: Count = 3

    @field_validator("rag")
    @classmethod
    def _searches(cls, name: str) -> str:
        try:
            if not issubclass(load_preset(name).method, Rag):
                raise LabError(f"preset {name} is no rag; expected one such as baselines/rag_sum")
        except LabError as error:
            raise ValueError(str(error)) from None
        return name

    @cached_property
    def searching(self) -> Preset:
        """The rag with its settings."""
        return load_preset(self.rag, {"k": self.k})

    @property
    def uses(self) -> Mapping[str, Preset]:
        return {"rag": self.searching}


class SelfAsk(Method):
    """A rag of its settings, asked step by step."""

    Settings = SelfAskSettings

    def __init__(self, lm: "LanguageModel", settings: SelfAskSettings) -> None:
        super().__init__(lm, settings)
        rag: Any = settings.searching
        self._rag: Rag = rag.method(lm, rag.settings)

    @classmethod
    def with_settings(cls, settings: SelfAskSettings) -> type[Self]:
        """The class that reads the weights that its rag reads."""
        made: Any = type(cls.__name__, (cls,), {"weights": settings.searching.method.weights})
        return made

    def index_tokens(self, traces: Sequence[Trace]) -> float:
        return self._rag.index_tokens(traces)

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        search = self._rag.open(traces, questions)

        def answered(query: Query, from_text: bool) -> StepAnswer:
            return read(self.delivery, query, search(query))  # whatever it asks: a rag has no answers of its own

        def retrieve(query: Query) -> Retrieved:
            return by_steps(query, search, answered).at(-1)

        return retrieve

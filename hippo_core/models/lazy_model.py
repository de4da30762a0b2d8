"""A language model that is loaded when something of it is first needed, so that a recall that needs none waits for none."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from hippo_core.models.spec import ModelSpec

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


class LazyModel:
    """Stands for the model of a spec: `spec` is there at once, everything else loads it."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec

    @cached_property
    def loaded(self) -> "LanguageModel":
        """The model itself."""
        from hippo_core.models.load import load

        return load(self.spec)

    @property
    def present(self) -> "LanguageModel | None":
        """The model where it is loaded by now."""
        return vars(self).get("loaded")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.loaded, name)

"""What is computed once for a world and used for all its items."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hippo_core.suites.lookup import cached_by_identity, positions
from hippo_core.suites.types import Fact, World

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


@dataclass
class WorldIndex:
    """An index over one world, owned by the caller and thrown away with the world. Parts are built when first asked for."""

    lm: "LanguageModel"
    world: World
    _built: dict[Hashable, Any] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, Fact]:
        """The world's facts by id."""
        return {fact.id: fact for fact in self.world.facts}

    @cached_property
    def positions(self) -> Callable[[tuple[str, ...]], dict[str, int]]:
        """Where each id stands in a list of ids, looked up once for the lists that items share."""
        return cached_by_identity(positions)

    def once(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """What `build` returns, built at the first call with this key."""
        if key not in self._built:
            self._built[key] = build()
        return self._built[key]

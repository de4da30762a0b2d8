"""One thing that is read from a cache."""

from dataclasses import dataclass

from hippo_core.suites.types import Item, World


@dataclass(frozen=True)
class Probe:
    """One thing that is read from a cache.

    Args:
        id, cluster: its name, and that of the topic or world that its interval goes by.
        task: one of TASKS.
        prefix: token ids before the context, whose keys and values nobody touches.
        blocks: token ids of the context, each block run by itself behind the prefix; most probes have one.
        reads: rows of token ids that follow the context; of the first `skip` of each none is scored.
        gold: the right row of `reads`.
        item, world: the question that is answered in words; None where likelihoods are compared.
        chance: the score of a guess.
    """

    id: str
    cluster: str
    task: str
    prefix: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    skip: tuple[int, ...]
    gold: int = 0
    item: Item | None = None
    world: World | None = None
    chance: float = 0.0

    @property
    def start(self) -> int:
        """The position of the first token that reads."""
        return len(self.prefix) + max(map(len, self.blocks))

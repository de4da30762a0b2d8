"""What becomes of an item, and of each step of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from hippo_core.protocols.paired.agents.usage import Usage

NOT_JUDGED = "not judged:"  # how the answer of an item's row begins where its agent broke the item


@dataclass(frozen=True)
class ItemResult:
    """`notes` say why it failed; empty where it succeeded. `fault`: it could not be judged, by what its agent left or did.

    `usage` of an item is the sum over its steps: count one or the other.

    `scores`, of an item sums over its steps: score_commands_passed of score_commands, assertions_passed of assertions (files and contents),
    memory_queries_verified of memory_queries_required, memory_queries (all that the memory was asked), steps_passed of steps.
    """

    item_id: str
    type: str
    condition: str
    repeat: int
    success: bool
    scores: Mapping[str, float]
    duration_ms: float
    notes: tuple[str, ...]
    skipped: bool = False
    usage: Usage | None = None
    containment: str = ""
    sub_results: tuple["ItemResult", ...] = ()
    fault: bool = False

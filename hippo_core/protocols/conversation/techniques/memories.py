"""hei_nw, sgc_rss, all: the lab's memories. Each turn is taught to a store; what is recalled for a question is shown as text.

Text, and not keys and values, so that a token costs as much as every other technique's. What the memory would show comes first, then the
rest of its ranking.
"""

import weakref
from collections.abc import Sequence

from hippo_core.live.memory import LiveMemory
from hippo_core.protocols.conversation.dialogue import Turn
from hippo_core.protocols.conversation.techniques.base import Rank, Retriever


class MemoryTechnique(Retriever):
    """Ranks passages as the memory of a preset recalls them."""

    preset: str

    def rank(self, passages: Sequence[str], turns: Sequence[Sequence[Turn]]) -> Rank:
        memory = LiveMemory(self.setting.lm, self.preset)
        taught = {trace.id: number for number, trace in enumerate(memory.teach(passages))}

        def rank(question: str) -> Sequence[int]:
            recalled = memory.recall(question, len(passages)).traces
            order = sorted(recalled, key=lambda trace: not trace.shown)  # the order among those shown, and among the others, stays
            return list(dict.fromkeys(taught[trace.id] for trace in order if trace.id in taught))

        weakref.finalize(rank, memory.close)
        return rank


class EpisodicTechnique(MemoryTechnique):
    """As the episodic memory recalls."""

    name = "hei_nw"
    preset = "memory/hei_nw"


class RelationalTechnique(MemoryTechnique):
    """As the relational memory recalls."""

    name = "sgc_rss"
    preset = "memory/sgc_rss"


class CombinedTechnique(MemoryTechnique):
    """As the three memories together recall."""

    name = "all"
    preset = "memory/all"

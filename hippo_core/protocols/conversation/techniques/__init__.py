"""Techniques: what of a dialogue is shown for a question. A file each, one interface (`base`).

none            nothing                                                        the lower bound
full            all of it, whatever the budget
oracle          the turns that tell the answer                                 the upper bound
random          turns drawn by the seed
recency         the last turns
pruning         the last turns that say something
compression     the last turns in their content words alone
summary         a rolling extractive summary
window_summary  the last turns, and a rolling summary of the others
model_summary   a rolling summary that the model writes                        model_window_summary: likewise of what left the window
bm25            the turns likest the question by words                         bm25_recent: the newer the better, too
embedding       by MiniLM's vectors (without it by the model's states)         embedding_recent
key             by the sparse key on the model's early states
actr            by ACT-R's activation: base level, spreading, fan              actr_base: without spreading; actr_noise: with noise
hei_nw          as the episodic memory recalls them
sgc_rss         as the relational memory recalls them
all             as the three memories together recall them

Those that rank by the question rank passages: NAME@3 and NAME@6 are of three and six turns in a row.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hippo_core.files import LabError, unknown
from hippo_core.plugins import imported
from hippo_core.protocols.conversation.techniques.base import Setting, Technique

OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("none:Nothing", {}),
    "full": ("full:Full", {}),
    "oracle": ("oracle:Oracle", {}),
    "random": ("chance:Chance", {}),
    "recency": ("recency:Recency", {}),
    "pruning": ("pruning:Pruning", {}),
    "compression": ("compression:Compression", {}),
    "summary": ("summary:Summary", {}),
    "window_summary": ("summary:WindowSummary", {}),
    "model_summary": ("model_summary:ModelSummary", {}),
    "model_window_summary": ("model_summary:ModelWindowSummary", {}),
    "bm25": ("selective:Selective", {"scorer": "bm25"}),
    "bm25_recent": ("selective:Selective", {"scorer": "bm25", "recency": 0.25}),
    "embedding": ("selective:Selective", {"scorer": "embedding"}),
    "embedding_recent": ("selective:Selective", {"scorer": "embedding", "recency": 0.25}),
    "key": ("selective:Selective", {"scorer": "key"}),
    "actr": ("actr:ACTR", {}),
    "actr_base": ("actr:ACTR", {"weight": 0.0}),
    "actr_noise": ("actr:ACTR", {"noise": 0.25}),
    "hei_nw": ("memories:LabMemory", {"preset": "memory/hei_nw"}),
    "sgc_rss": ("memories:LabMemory", {"preset": "memory/sgc_rss"}),
    "all": ("memories:LabMemory", {"preset": "memory/all"}),
}
RETRIEVERS = ("bm25", "bm25_recent", "embedding", "embedding_recent", "key", "actr", "actr_base", "actr_noise", "hei_nw", "sgc_rss", "all")


def parsed(name: str) -> tuple[str, int]:
    """A technique's name and its chunk of turns; LabError for an unknown one."""
    base, at, size = name.partition("@")
    if base not in OURS:
        raise unknown("technique", base, OURS)
    if not at:
        return base, 1
    if not size.isdecimal() or int(size) < 1 or base not in RETRIEVERS:
        raise LabError(f"technique {name!r}: expected a retriever ({', '.join(RETRIEVERS)}), @ and a number of turns from 1, as bm25@3")
    return base, int(size)


def require(names: Sequence[str]) -> None:
    """LabError where one of these is no technique, or is named twice."""
    for name in names:
        parsed(name)
    if twice := [name for name in names if names.count(name) > 1]:
        raise LabError(f"technique {twice[0]!r} is named twice")


def load_technique(name: str, setting: Setting) -> Technique:
    """The technique of this name; LabError for an unknown one."""
    base, chunk = parsed(name)
    path, options = OURS[base]
    own = replace(setting, chunk=chunk, options={**options, **setting.options})
    return imported(f"hippo_core.protocols.conversation.techniques.{path}", f"technique {name}")(own)

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

from hippo_core.discovery import Member, found_member, member
from hippo_core.errors import LabError
from hippo_core.protocols.conversation.techniques.base import Technique, TechniqueContext


def parsed(name: str) -> tuple[str, int]:
    """A technique's name and its chunk of turns; LabError for an unknown one."""
    base, at, size = name.partition("@")
    found_member(__name__, base, "technique")
    if not at:
        return base, 1
    if not size.isdecimal() or int(size) < 1 or not member(__name__, base, "technique").chunks:
        raise LabError(f"technique {name!r}: expected a retriever, @ and a number of turns from 1, as bm25@3")
    return base, int(size)


def found(names: Sequence[str]) -> list[Member]:
    """The techniques of these names, which are not loaded; LabError where one is none, or is named twice."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise LabError(f"technique {twice[0]!r} is named twice")
    return [found_member(__name__, parsed(name)[0], "technique") for name in names]


def load_technique(name: str, setting: TechniqueContext) -> Technique:
    """The technique of this name; LabError for an unknown one."""
    base, chunk = parsed(name)
    return member(__name__, base, "technique")(replace(setting, chunk=chunk))

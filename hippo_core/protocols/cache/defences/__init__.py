"""Defences: what is done to a cache between its writing and its reading. A file each, one interface (`base`).

none            nothing
reset           damaged vectors become zero                                                    told where the damage is
masking         tokens of which a vector is damaged are not looked at                          told
smoothing       each token's vector mixed with those before it
clipping        features clamped to the range that clean text has, vectors to its length
detect_clear    vectors that no clean text has become zero
rms_outlier     vectors whose length no clean text has become the mean of clean text
median          the median of each feature over neighbouring tokens
ecc             a Hamming code over each 64 bits, with its check bits in memory; ecc_equal: over each 4, with the bytes of a copy
learned         a repair that was trained by self-distillation
wiener          whole tokens, all layers' keys and values, become what they most likely were; wiener_layer: by one layer alone
episodic        spans that differ from what the store recalls of them are put back from the store
episodic_random, episodic_oldest, episodic_gold   the same number of spans, chosen by chance, by age, by being told
recompute       the model runs the text again: the ceiling
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hippo_core.discovery import Member, found_member, member

if TYPE_CHECKING:
    from hippo_core.protocols.cache.defences.base import Defence, DefenceContext


def found(names: Sequence[str]) -> list[Member]:
    """The defences of these names, which are not loaded; LabError for an unknown one."""
    return [found_member(__name__, name, "defence") for name in names]


def load_defence(name: str, setting: "DefenceContext") -> "Defence":
    """The defence of this name; LabError for an unknown one."""
    return member(__name__, name, "defence")(setting)

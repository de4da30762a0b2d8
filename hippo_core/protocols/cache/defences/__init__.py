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

from hippo_core.files import unknown
from hippo_core.plugins import imported
from hippo_core.protocols.cache.defences.base import Defence, Setting

OURS = {
    "none": "none:Nothing",
    "reset": "reset:Reset",
    "masking": "masking:Masking",
    "smoothing": "smoothing:Smoothing",
    "clipping": "clipping:Clipping",
    "detect_clear": "detect_clear:DetectClear",
    "rms_outlier": "rms_outlier:RMSOutlier",
    "median": "median:Median",
    "ecc": "ecc:ECC",
    "ecc_equal": "ecc:Equal",
    "learned": "learned:Learned",
    "wiener": "wiener:Wiener",
    "wiener_layer": "wiener:ByLayer",
    "episodic": "episodic:Episodic",
    "episodic_random": "episodic:Random",
    "episodic_oldest": "episodic:Oldest",
    "episodic_gold": "episodic:Gold",
    "recompute": "recompute:Recompute",
}


def require(names: Sequence[str]) -> None:
    """LabError where one of these is no defence."""
    for name in names:
        if name not in OURS:
            raise unknown("defence", name, OURS)


def load_defence(name: str, setting: Setting) -> Defence:
    """The defence of this name; LabError for an unknown one."""
    require([name])
    return imported(f"hippo_core.protocols.cache.defences.{OURS[name]}", f"defence {name}")(setting)

"""Consolidation: what a store holds is rehearsed into the model itself, so that it answers with its memory off.

`rehearsal` makes questions out of traces, `kept` what must not be lost, `ways` how the model may change, `sleep` trains.
"""

from hippo_core.training.consolidation.rehearsal import Rehearsed, rehearse
from hippo_core.training.consolidation.sleep import Sleep, SleepRecipe
from hippo_core.training.consolidation.ways import WAYS, Way, make_way

__all__ = ["WAYS", "Rehearsed", "Sleep", "SleepRecipe", "Way", "make_way", "rehearse"]

"""A memory in a program of one's own: told, asked and slept with one call each, kept in a folder."""

from hippo_core.live.answer import Answer, RecalledTrace, RecallResult, Slept, TeachResult
from hippo_core.live.memory import LiveMemory
from hippo_core.training.consolidation.lineage import Consolidated

"""Completion: what else can be said of a few candidates once the cue is completed to a whole memory, or taken back to its words.

hopfield     the cue's key is drawn towards the stored keys, z <- softmax(beta M z) M (Ramsauer et al. 2020, arXiv 2008.02217), and
             candidates are compared with what came out
predictive   log p(cue | trace) by the frozen model that answers, from the traces' stored keys and values: would this trace have made it
             say that cue? Ranking passages by the likelihood of the question is UPR (Sachan et al. 2022, arXiv 2204.07496); there
             each passage is read anew as text, here only the cue's tokens are run
"""

import math
from collections.abc import Sequence

from hippo_core.delivery.trace_kv import TraceKV
from hippo_core.models.kv import tokens_of
from hippo_core.models.prompt import Decoding, split
from hippo_core.models.score import log_likelihood_behind


class Predictive:
    """Predictive completion behind the beginning that `known` was made with."""

    def __init__(self, known: TraceKV, decoding: Decoding = "short", batch_size: int = 64) -> None:
        self.known, self.batch_size = known, batch_size
        self.decoding: Decoding = decoding

    def log_likelihoods(self, cue: str, blocks: Sequence[Sequence[int]]) -> tuple[list[float], int]:
        """log p(cue | trace) in nats for each trace's block, and how many tokens were run for it; those of traces that were not known
        yet are left out."""
        pieces = split(self.known.lm, (), cue, self.decoding)
        asked = pieces.tail[: pieces.asked]
        found = self.known.get(blocks)
        before = [(self.known.prefix, kv[:, :, :, :-1]) for kv in found.traces]
        starts = [tokens_of(self.known.prefix) + len(block) - 1 for block in blocks]
        rows = [[block[-1], *asked] for block in blocks]
        logs = log_likelihood_behind(self.known.lm, before, starts, rows, self.batch_size)
        return [math.fsum(row) for row in logs], sum(map(len, rows))

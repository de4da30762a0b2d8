"""actr: ACT-R's declarative memory over turns (Anderson and Lebiere 1998; Anderson et al. 2004, Psychological Review 111, 1036-1060).

    A_i = B_i + sum_j (W / m) S_ji + noise         B_i = ln sum_k t_k^-d         S_ji = S - ln fan_j

Time is counted in turns; the question comes one turn after the last. Uses of a turn are itself and every later turn that mentions a
name of it. The m sources j are the content words of the question that some turn holds; fan_j is how many turns hold j, and S_ji is 0 where
turn i does not hold it. Noise is logistic with scale s, variance pi^2 s^2 / 3.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Annotated

from pydantic import Field

from hippo_core.protocols.conversation.dialogue import Turn
from hippo_core.protocols.conversation.entities import content, names
from hippo_core.protocols.conversation.techniques.base import Rank, Retriever, RetrieverSettings


class ACTRSettings(RetrieverSettings):
    """Decay d, strength S of associations (of 2, 3 and 4.5 the best on validation dialogues; it must exceed ln fan), total weight W of
    sources, noise s, retrieval threshold tau: what is less active is not shown."""

    decay: Annotated[float, Field(ge=0)] = 0.5
    strength: float = 4.5
    weight: Annotated[float, Field(ge=0)] = 1.0
    noise: Annotated[float, Field(ge=0)] = 0.0
    threshold: float | None = None


def base_level(uses: Sequence[float], now: float, decay: float) -> float:
    """B = ln sum (now - use)^-decay, over the times of uses before `now`; -inf without any."""
    total = math.fsum((now - use) ** -decay for use in uses if use < now)
    return math.log(total) if total > 0 else -math.inf


def spreading(sources: Sequence[str], words: frozenset[str], fan: Mapping[str, int], settings: ACTRSettings) -> float:
    """The sum over sources of W / m (S - ln fan), for those that a chunk holds; m counts the sources that any chunk holds."""
    known = [source for source in sources if fan.get(source)]
    return math.fsum(settings.weight / len(known) * (settings.strength - math.log(fan[source])) for source in known if source in words)


def logistic(random: Random, scale: float) -> float:
    """A draw of logistic noise with mean 0."""
    if not scale:
        return 0.0
    share = random.uniform(1e-12, 1 - 1e-12)
    return scale * math.log(share / (1 - share))


def uses_of(turns: Sequence[Sequence[Turn]]) -> list[list[float]]:
    """For each passage the times at which it or a name of it was mentioned, in turns."""
    starts = [0, *accumulate(map(len, turns))][:-1]
    named = [[names(turn.text) for turn in part] for part in turns]
    times = [[start + offset for offset in range(len(part))] for start, part in zip(starts, turns, strict=True)]
    later = [(time, own) for moments, parts in zip(times, named, strict=True) for time, own in zip(moments, parts, strict=True)]
    uses = []
    for moments, parts in zip(times, named, strict=True):
        known = frozenset().union(*parts)
        uses.append([float(t) for t in moments] + [float(t) for t, own in later if t > moments[-1] and own & known])
    return uses


class ACTR(Retriever):
    """Ranks passages by activation."""

    name = "actr"
    settings = ACTRSettings()

    def rank(self, passages: Sequence[str], turns: Sequence[Sequence[Turn]]) -> Rank:
        settings, now = self.settings, float(sum(map(len, turns)))
        base = [base_level(uses, now, settings.decay) for uses in uses_of(turns)]
        chunk_words = [frozenset(content(text)) for text in passages]
        fan = Counter(word for words in chunk_words for word in words)

        def rank(question: str) -> Sequence[int]:
            random = Random(f"{self.setting.seed}/{question}")
            sources = list(dict.fromkeys(content(question)))
            active = [
                level + spreading(sources, words, fan, settings) + logistic(random, settings.noise)
                for level, words in zip(base, chunk_words, strict=True)
            ]
            above = [index for index, level in enumerate(active) if settings.threshold is None or level >= settings.threshold]
            return sorted(above, key=lambda index: (-round(active[index], 9), index))

        return rank

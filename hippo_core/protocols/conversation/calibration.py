"""Is the judge to be believed? People rate a sample of the answers blind; only where they agree with it are its numbers shown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hippo_core.protocols.conversation.judge import ASPECTS
from hippo_core.results.statistics.interval import Interval
from hippo_core.results.statistics.kappa import kappa_interval

SHARE, AGREEMENT, LEAST = 0.2, 0.4, 20  # of the answers; kappa from which a judge is shown; ratings below which nothing is said


def sample(scored: Sequence[dict[str, Any]], seed: int = 0, share: float = SHARE) -> list[dict[str, Any]]:
    """The answers to rate, in the order in which they are rated: a seeded draw of a share of all answers, at least one."""
    answered = sorted((one for one in scored if one["error"] is None), key=lambda one: one["answer_id"])
    return Random(f"calibration/{seed}").sample(answered, min(len(answered), max(1, math.ceil(share * len(answered))))) if answered else []


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """The agreement of judge and people on an aspect, and whether it suffices; `why` it does not."""

    kappa: Interval
    shown: bool
    why: str


def agreement(
    scored: Sequence[dict[str, Any]], judged: Sequence[dict[str, Any]], ratings: Sequence[dict[str, Any]], aspect: str
) -> JudgeAgreement:
    """The weighted kappa of a judge with people, clusters being dialogues. Several people's ratings of an answer count one by one."""
    dialogue = {one["answer_id"]: one["dialogue"] for one in scored}
    by_judge = {one["answer_id"]: one[aspect] for one in judged if one[aspect] is not None}
    both = [(by_judge[one["answer_id"]], one[aspect], dialogue[one["answer_id"]]) for one in ratings
            if one["answer_id"] in by_judge and one["answer_id"] in dialogue and one.get(aspect) is not None]  # fmt: skip
    machine, people, clusters = ([row[column] for row in both] for column in range(3))
    kappa = kappa_interval(machine, people, clusters) if both else Interval(math.nan, math.nan, math.nan, 0, 0)
    if not ratings:
        return JudgeAgreement(kappa, False, "nobody has rated")
    if len(both) < LEAST:
        return JudgeAgreement(kappa, False, f"{len(both)} rated answers, at least {LEAST} are needed")
    enough = kappa.mean >= AGREEMENT
    return JudgeAgreement(kappa, bool(enough), "" if enough else f"kappa {kappa.mean:.2f} is below {AGREEMENT}")


def believed(
    scored: Sequence[dict[str, Any]], judged: Sequence[dict[str, Any]], ratings: Sequence[dict[str, Any]]
) -> dict[str, JudgeAgreement]:
    """The agreement on each aspect."""
    return {aspect: agreement(scored, judged, ratings, aspect) for aspect in ASPECTS}

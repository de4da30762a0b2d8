"""Conditions that retrieve nothing: the window, everything taught, the right facts, wrong facts at random."""

import math
from random import Random

from hippo_core.methods.types import Choice, Request


def window(request: Request) -> Choice:
    """The facts that stand before the question, in the immediate regime; nothing in the delayed one."""
    shown = set(request.item.window) if request.regime == "immediate" else set()
    return Choice(request.among_taught(shown), None, math.nan)


def longctx(request: Request) -> Choice:
    """All taught facts."""
    return Choice(request.taught, None, math.nan)


def oracle(request: Request) -> Choice:
    """The gold facts: the ceiling of what any retrieval can show."""
    return Choice(request.among_taught(set(request.item.gold_facts)), None, math.nan)


def random_facts(request: Request) -> Choice:
    """`k` taught facts that are not gold, drawn by the item's id; as many as there are gold facts where `k` is not set."""
    others = [fact.id for fact in request.taught if fact.id not in request.item.gold_facts]
    count = min(len(others), request.k or max(1, len(request.item.gold_facts)))
    drawn = Random(f"random_facts/{request.item.world}/{request.item.id}").sample(others, count)
    return Choice(request.among_taught(set(drawn)), None, math.nan)

"""What a base model can do, skill by skill: the rows of its card, each measured through the same path as an experiment.

A skill is a suite's validation worlds, asked with so many facts in the prompt: the gold ones and others drawn at random, in order of
telling. The test worlds of the suites are never used here, so a recipe may be chosen by these numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pandas as pd

from hippo_core.conditions import load_preset
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.score import TextLoss, text_loss
from hippo_core.protocols.base_model.stories import held_out_stories
from hippo_core.protocols.evaluate import evaluate
from hippo_core.results.statistics import cluster_interval
from hippo_core.suites import get_suite
from hippo_core.suites.datasets.build import worlds
from hippo_core.suites.types import Item, World

SEED = 90210  # no experiment uses the worlds of this seed


@dataclass(frozen=True)
class Skill:
    """One row of the card. `n_facts` facts stand in the prompt (0: all that were told); `goal` is NaN where none was set."""

    name: str
    suite: str
    n_facts: int
    goal: float = float("nan")
    rungs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    profile: str = "default"
    new: str = ""  # only items of this slice ("new_name", ...); empty: only items of none


SKILLS = (
    Skill("facts by slot, paraphrased, 1 fact", "episodic", 1, 0.98, ("paraphrase",)),
    Skill("facts by slot, paraphrased, 4 facts", "episodic", 4, 0.93, ("paraphrase",)),
    Skill("facts by slot, paraphrased, 8 facts", "episodic", 8, 0.85, ("paraphrase",)),
    Skill("facts by slot, paraphrased, 16 facts", "episodic", 16, rungs=("paraphrase",)),
    Skill("facts by slot, exact or partial cue, 8 facts", "episodic", 8, rungs=("exact", "partial")),
    Skill("facts by slot, misspelt cue, 8 facts", "episodic", 8, rungs=("noisy",)),
    Skill("names that no training saw, 8 facts", "episodic", 8, rungs=("exact", "partial"), new="new_name"),
    Skill("synonyms that no training saw, 8 facts", "episodic", 8, rungs=("paraphrase",), new="new_synonym"),
    Skill("question forms that no training saw, 8 facts", "episodic", 8, rungs=("paraphrase",), new="new_template"),
    Skill("journeys by slot, paraphrased, 8 facts", "episodic_cross", 8, rungs=("paraphrase",)),
    Skill("last mention wins, 8 facts", "episodic_multi", 8, 0.9, kinds=("corrected",)),
    Skill("last mention wins, 16 facts", "episodic_multi", 0, 0.9, kinds=("corrected",)),
    Skill("two hops, the two facts", "semantic", 2, kinds=("hops_2",)),
    Skill("two hops, 8 facts", "semantic", 8, 0.85, kinds=("hops_2",)),
    Skill("two hops, 20 facts", "semantic", 0, 0.85, kinds=("hops_2",)),
    Skill("three hops, 20 facts", "semantic", 0, kinds=("hops_3",)),
    Skill("contradictions, 20 facts", "semantic", 0, kinds=("contradiction",)),
    Skill("bAbI 1", "babi", 0, kinds=("qa1",)),
    Skill("bAbI 2", "babi", 0, kinds=("qa2",)),
    Skill("a thing by its place, whole map", "spatial", 0, kinds=("recall",)),
    Skill("a taught route, whole map", "spatial", 0, kinds=("procedure",)),
    Skill("shortest path on a grid, whole map", "spatial", 0, kinds=("grid_path",)),
)


def measure(lm: LanguageModel, skills: Sequence[Skill] = SKILLS, n: int = 200, batch_size: int = 32) -> pd.DataFrame:
    """One row a skill: items, worlds, accuracy with its 95 % interval, chance, goal, seconds an item."""
    return pd.DataFrame([measure_skill(lm, skill, n, batch_size) for skill in skills])


def measure_skill(lm: LanguageModel, skill: Skill, n: int, batch_size: int) -> dict[str, Any]:
    """The card's row of one skill, over up to `n` items."""
    chosen = choose_worlds(skill, n, lm.spec.context_limit)
    rows = evaluate(lm, get_suite(skill.suite), chosen, load_preset("baselines/longctx", {}), batch_size=batch_size)
    interval = cluster_interval(rows["score"].to_numpy(), rows["world"].to_numpy())
    return {
        "skill": skill.name,
        "n": len(rows),
        "worlds": rows["world"].nunique(),
        "accuracy": rows["score"].mean(),
        "low": interval.low,
        "high": interval.high,
        "chance": rows["chance"].mean(),
        "goal": skill.goal,
        "seconds": rows["latency_ms"].mean() / 1000,
    }


def choose_worlds(skill: Skill, n: int, context_limit: int) -> list[World]:
    """Validation worlds cut down to the items of a skill, each with what was told, until there are `n` items."""
    chosen, count = [], 0
    only = {"rungs": list(skill.rungs)} if skill.rungs else {}
    for world in worlds(skill.suite, skill.profile, 1000 if skill.suite == "babi" else 40 * n, SEED, "val", context_limit, only):
        items = tuple(narrow(world, item, skill.n_facts) for item in world.items if belongs(skill, item))[: n - count]
        if items:
            chosen.append(replace(world, items=items))
            count += len(items)
        if count == n:
            break
    return chosen


def belongs(skill: Skill, item: Item) -> bool:
    """Whether an item is of this skill: its rung, its kind, and of the novelties only the one that the skill asks for."""
    novel = skill.new in item.slices if skill.new else not item.slices
    return novel and (not skill.rungs or item.rung in skill.rungs) and (not skill.kinds or item.kind in skill.kinds)


def narrow(world: World, item: Item, n_facts: int) -> Item:
    """The item as if only `n_facts` facts had been told, the gold ones among them; 0 keeps all."""
    others = [fact for fact in item.taught if fact not in item.gold_facts]
    extra = max(0, n_facts - len(item.gold_facts)) if n_facts else len(others)
    kept = set(Random(item.id).sample(others, min(extra, len(others)))) | set(item.gold_facts)
    told = tuple(fact for fact in item.taught if fact in kept)
    return replace(item, window=told, taught=told)


def story_loss(lm: LanguageModel, count: int = 60) -> TextLoss:
    """Loss on stories that no training saw: nats a token, nats a byte."""
    return text_loss(lm, held_out_stories()[:count])

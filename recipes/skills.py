"""What a base model can do, skill by skill: the rows of its card, each measured through the same path as an experiment.

A skill is a suite's validation worlds (or a drill's, where no suite has it), asked with so many facts in the prompt: the gold ones and
others drawn at random, in order of telling. The test worlds of the suites are never used here, so a recipe may be chosen by these
numbers; the public bAbI tests alone are the exception, and no recipe was chosen by them.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from hippo_core.evaluation.run import answer
from hippo_core.files import read_yaml
from hippo_core.methods.presets import load_preset
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.score import TextLoss, text_loss
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.suites import get_suite, settings_for
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Fact, Item, Settings, Split, Suite, World
from hippo_core.text_files import why_missing
from hippo_core.training import tasks
from hippo_core.training.lessons import Lesson
from hippo_core.training.stories import STORIES, held_out_stories

SEED = 90210  # no experiment uses the worlds of this seed


@dataclass(frozen=True)
class Skill:
    """One row of the card. `source` is a suite or a drill; `n_facts` facts stand in the prompt (0: all that were told).

    `new`: only items of all these slices; empty: only items of none. `settings` replace the suite's. `blocks`: each fact is read
    apart from the others. `says`: which answers count, "right" ones or all but "unknown". `goals` by model; none where none was set.
    """

    name: str
    source: str
    n_facts: int = 0
    rungs: Sequence[str] = ()
    kinds: Sequence[str] = ()
    new: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    blocks: bool = False
    says: str = "right"
    split: Split = "val"
    goals: Mapping[str, float] = field(default_factory=dict)


SKILLS = tuple(Skill(**row) for row in read_yaml(Path(__file__).with_suffix(".yaml")))
COLUMNS = ("skill", "n", "worlds", "accuracy", "low", "high", "chance", "goal", "seconds")


def measure(
    lm: LanguageModel, skills: Sequence[Skill] = SKILLS, n: int = 200, batch_size: int = 32, say: Callable[[str], None] = print
) -> pd.DataFrame:
    """One row a skill: items, worlds, accuracy with its 95 % interval, chance, goal, seconds an item. A line is said after each.

    A skill whose files (`files_of`) are not in the user's folder is skipped.
    """
    rows = []
    for number, skill in enumerate(skills, 1):
        if reason := why_missing(files_of(skill)):
            say(f"{number}/{len(skills)}  {skill.name}: skipped, {reason}")
            continue
        rows.append(row := measure_skill(lm, skill, n, batch_size))
        say(f"{number}/{len(skills)}  {skill.name}: {row['accuracy']:.2f} of {row['n']}, {row['n'] * row['seconds']:.0f} s")
    return pd.DataFrame(rows, columns=list(COLUMNS))


def measure_skill(lm: LanguageModel, skill: Skill, n: int, batch_size: int) -> dict[str, Any]:
    """The card's row of one skill, over up to `n` items."""
    suite, chosen = choose_worlds(skill, n, lm.spec.context_limit)
    preset = load_preset("baselines/longctx", {"delivery": "kv" if skill.blocks else "text"})
    rows = answer(lm, suite, chosen, preset.method(lm, preset.settings), batch_size=batch_size)
    marks = rows["score"] if skill.says == "right" else 1.0 - rows["abstained"]
    interval = cluster_interval(marks.to_numpy(), rows["world"].to_numpy())
    return {
        "skill": skill.name,
        "n": len(rows),
        "worlds": rows["world"].nunique(),
        "accuracy": marks.mean(),
        "low": interval.low,
        "high": interval.high,
        "chance": rows["chance"].mean() if skill.says == "right" else math.nan,
        "goal": skill.goals.get(lm.spec.name, math.nan),
        "seconds": rows["latency_ms"].mean() / 1000,
    }


def files_of(skill: Skill) -> Sequence[str]:
    """The names of the files of params/data.yaml that a skill's questions come from."""
    if skill.source in tasks.DRILLS:
        return tasks.FILES.get(skill.source, ())
    suite = get_suite(skill.source)
    return suite.files(settings_for(suite.name, "default", skill.settings))


def choose_worlds(skill: Skill, n: int, context_limit: int) -> tuple[Suite, list[World]]:
    """Worlds cut down to the items of a skill, each with what was told, until there are `n` items; and how they are scored."""
    drawn = skill.source in tasks.DRILLS
    suite = DRILLED if drawn else get_suite(skill.source)
    stream = drilled_worlds(skill) if drawn else suite_worlds(skill, n, context_limit)
    chosen, count = [], 0
    for world in stream:
        items = tuple(narrow(world, item, skill) for item in world.items if belongs(skill, item))[: n - count]
        if items:
            chosen.append(replace(world, items=items))
            count += len(items)
        if count == n:
            break
    return suite, chosen


def suite_worlds(skill: Skill, n: int, context_limit: int) -> Iterator[World]:
    """A suite's worlds for a skill; where new names are asked for, all have them, else none."""
    overrides = dict(skill.settings) | ({"rungs": list(skill.rungs)} if skill.rungs else {})
    if "new_names" in get_suite(skill.source).settings.model_fields:
        overrides["new_names"] = float("new_name" in skill.new)
    most = 200 if skill.source == "babi" else 200 * n
    return worlds(skill.source, "default", most, SEED, skill.split, context_limit, overrides)


DRILLED = Suite("drill", "lessons of the base model, as worlds", Settings, lambda *_: World("", (), ()), answer_budget=40)


def drilled_worlds(skill: Skill) -> Iterator[World]:
    """A drill's validation lessons as worlds, without end."""
    for index in itertools.count():
        lesson = tasks.DRILLS[skill.source](Random(f"card/{skill.source}/{SEED}/{index}"), skill.n_facts, "val")
        yield lesson_world(lesson, f"val-{index:05d}")


def lesson_world(lesson: Lesson, name: str) -> World:
    """A lesson's facts and questions as a world and its items. A guess says yes or no, or picks one of several facts."""
    facts = tuple(Fact(f"{name}.f{number}", name, text, {}, number) for number, (text, _) in enumerate(lesson.facts))
    taught = tuple(fact.id for fact in facts)
    items = tuple(
        Item(
            id=f"{name}.q{number}",
            world=name,
            question=branch.question,
            answers=(branch.answer,),
            gold_facts=tuple(facts[index].id for index in branch.gold),
            kind=branch.skill,
            chance=0.5 if branch.answer in ("yes", "no") else 1 / len(facts) if len(facts) > 1 else math.nan,
            window=taught,
            taught=taught,
        )
        for number, branch in enumerate(branch for branch in lesson.branches if branch.question)
    )
    return World(name, facts, items)


def belongs(skill: Skill, item: Item) -> bool:
    """Whether an item is of this skill: its rung, its kind, and of the novelties exactly those that the skill asks for (or more)."""
    novel = set(skill.new) <= set(item.slices) if skill.new else not item.slices
    return novel and (not skill.rungs or item.rung in skill.rungs) and (not skill.kinds or item.kind in skill.kinds)


def narrow(world: World, item: Item, skill: Skill) -> Item:
    """The item as if only so many facts had been told, the gold ones among them; all of them where the skill says 0, or is a drill."""
    if not skill.n_facts or skill.source in tasks.DRILLS:
        return item
    others = [fact for fact in item.taught if fact not in item.gold_facts]
    extra = max(0, skill.n_facts - len(item.gold_facts))
    chosen = set(Random(item.id).sample(others, min(extra, len(others)))) | set(item.gold_facts)
    window = tuple(fact for fact in item.taught if fact in chosen)
    return replace(item, window=window, taught=window)


def story_loss(lm: LanguageModel, count: int = 60) -> TextLoss | None:
    """Loss on stories that no training saw: nats a token, nats a byte; None where the user's folder has no stories."""
    return None if why_missing([STORIES]) else text_loss(lm, held_out_stories()[:count])

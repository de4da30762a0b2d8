"""Sleeps in a row: the rows of the experiment `sleeps`. Group after group of a store's facts goes into a model, and all are asked."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.evaluation.run import passages_of
from hippo_core.methods.presets import load_preset
from hippo_core.protocols.consolidation.run import EPISODES, asked, keep, plain_text, read_store, reading_suite, recipe_of, train_once
from hippo_core.protocols.consolidation.table import OFF, ORACLE, SLEEPS_COLUMNS, SLEEPS_PROBES
from hippo_core.suites.types import World
from hippo_core.training.consolidation.sleep import Sleep, shuffled
from hippo_core.training.consolidation.update_rules import UpdateRule, make_update_rule


def sleeps(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """Ask, sleep on one group of the store's facts after another, and ask about all groups after each; what was learnt lies in the record.

    `apart`: the model is the unchanged one again before each sleep, and only the group that it slept on is asked, so that the diagonal is
    what a single passage brings (SEAL, Zweiger et al. 2025, arXiv 2506.10943, section 3.1). `cell.slept` says what all of it took.

    Raises:
        LabError: there are fewer worlds than the groups need.
    """
    parameters, lm, preset = cell.parameters, cell.language_model, cell.resolved.preset
    groups = cut_into(cell.worlds(), parameters.groups, parameters.group_size, parameters.dry_run)
    traces = read_store(preset.method(lm, preset.settings), cell.store, [world for group in groups for world in group])
    group_traces = [[trace for world in group for trace in traces[world.id]] for group in groups]
    own = {name: getattr(parameters, name) for name in ("questions", "rehearse_earlier")}
    recipe = recipe_of(parameters, lm, max(map(len, group_traces))).model_copy(update=own)
    slept: dict[str, Any] = {"way": recipe.way, "sleeps": 0, **dict.fromkeys(("replay_samples", "tokens", "seconds"), 0)}
    rows = [row for probe in (OFF, ORACLE) for row in ask_groups(cell, groups, probe)] + others(cell, 0)
    update_rule = make_update_rule(recipe.way, lm, recipe.rank, recipe.first_block)
    try:
        for number, new in enumerate(group_traces, 1):
            if parameters.apart and number > 1:
                update_rule.detach()
                update_rule = make_update_rule(recipe.way, lm, recipe.rank, recipe.first_block)
            earlier = [] if parameters.apart else [trace for group in group_traces[: number - 1] for trace in group]
            seed = recipe.seed + 1000 * (number - 1)
            sleep = Sleep(recipe.model_copy(update={"seed": seed}), lm, update_rule, new, shuffled(len(new), f"{seed}/{number}"), earlier)
            train_once(cell, sleep, slept, say, number, parameters.apart)
            slept["sleeps"] = number
            rows += ask_groups(cell, groups, OFF, number, update_rule)
        rows += others(cell, len(group_traces), update_rule)
        facts = sum(map(len, group_traces))
        slept |= {"numbers": update_rule.number(), "facts": facts, "seconds_a_fact": slept["seconds"] / facts}
        if not parameters.apart:
            keep(update_rule, cell, recipe, slept)
    finally:
        update_rule.detach()
    cell.slept = slept
    return pd.DataFrame(rows, columns=list(SLEEPS_COLUMNS))


def cut_into(worlds: Sequence[World], groups: int, size: int | None, fewer: bool = False) -> list[list[World]]:
    """The worlds in so many groups: of `size` worlds each, or all of them in parts as equal as can be.

    `fewer`: as many groups as there are worlds for. LabError otherwise where there are too few.
    """
    most = len(worlds) // (size or 1)
    if most < groups and not (fewer and most):
        each = f" of {size}" if size else ""
        raise LabError(f"{groups} groups{each} need {groups * (size or 1)} worlds, the store has {len(worlds)}: lower groups, or raise n")
    groups = min(groups, most)
    total = groups * size if size else len(worlds)
    ends = [round(number * total / groups) for number in range(groups + 1)]
    return [list(worlds[first:last]) for first, last in pairwise(ends)]


def ask_groups(
    cell: Any, groups: Sequence[Sequence[World]], probe: str, sleep: int = 0, update_rule: UpdateRule | None = None
) -> list[dict[str, Any]]:
    """Rows of the questions of all groups, after a sleep from the unchanged model those of its own group alone."""
    worlds = {world.id: number for number, group in enumerate(groups, 1) for world in group}
    own = sleep and cell.parameters.apart
    wanted = [world for number, group in enumerate(groups, 1) for world in group if not own or number == sleep]
    passages = {world.id: passages_of(world) for world in wanted}
    rows = asked(cell.language_model, cell.suite, wanted, load_preset(SLEEPS_PROBES[probe]), passages, update_rule)
    return [{"probe": probe, "sleep": sleep, "group": worlds[row["world"]]} | row for row in rows]


def others(cell: Any, sleep: int, update_rule: UpdateRule | None = None) -> list[dict[str, Any]]:
    """Rows of what must not be lost: facts of no group (0) in the prompt, and plain text."""
    parameters, lm = cell.parameters, cell.language_model
    in_context = reading_suite(lm, *EPISODES, parameters.in_context, parameters.seed, update_rule)
    probes = {"in_context": in_context, "text": plain_text(lm, parameters.dry_run, update_rule)}
    return [{"probe": probe, "sleep": sleep, "group": 0} | row for probe, rows in probes.items() for row in rows]

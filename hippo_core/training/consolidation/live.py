"""Consolidate the traces of a live memory into its model, and take up again what an earlier process learnt."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hippo_core.files import LabError, new_folder, read_object, write_json
from hippo_core.models import checksums
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation.sleep import Sleep, SleepRecipe, first_block, shuffled
from hippo_core.training.consolidation.ways import Way, make_way

LINEAGE = "lineage.json"
A_TRACE = 8  # questions a step, at most


def learn(
    lm: Any, traces: Sequence[Trace], way: str, steps: int, folder: Path, progress: Callable[[int, int], object] | None = None
) -> Way:
    """Rehearse the traces into the model by a way, write what was learnt to `folder`, whole or not at all, and leave it attached.

    LabError where nothing can be asked about the traces; the model is then as it was.
    """
    usual = SleepRecipe.model_fields["questions"].default
    questions = max(1, min(usual, A_TRACE * len(traces)))
    recipe = SleepRecipe(way=way, steps=steps, first_block=first_block(lm), questions=questions)
    attached = make_way(way, lm, recipe.rank, recipe.first_block)
    try:
        sleep = Sleep(recipe, lm, attached, traces, shuffled(len(traces), str(recipe.seed)))
        for step in range(steps):
            sleep.learn(step)
            if progress:
                progress(step + 1, steps)
        lineage = {"model": lm.spec.name, "weights": checksums.weights(lm.spec.name), "recipe": recipe.model_dump(), "traces": len(traces)}
        with new_folder(folder) as new:
            attached.save(new)
            write_json(new / LINEAGE, lineage)
    except BaseException:
        attached.detach()
        raise
    return attached


def take_up(lm: Any, folder: Path) -> Way:
    """What `learn` wrote, attached to the model. LabError where it is damaged or was learnt by another model."""
    made = read_object(folder / LINEAGE)
    if made.get("weights") != checksums.weights(lm.spec.name):
        raise LabError(f"{folder} was learnt by {made.get('model')} with other weights than {lm.spec.name} has; sleep again, or remove it")
    recipe = SleepRecipe.model_validate(made["recipe"])
    way = make_way(recipe.way, lm, recipe.rank, recipe.first_block)
    try:
        way.load(folder)
    except BaseException:
        way.detach()
        raise
    return way

"""Consolidate the traces of a live memory into its model, and take up again what was learnt, in this process or a later one."""

import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hippo_core.files import LabError, new_folder, read_object, write_json
from hippo_core.live.consolidation import LINEAGE
from hippo_core.models import checksums
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation.sleep import Sleep, SleepRecipe, first_block, shuffled
from hippo_core.training.consolidation.ways import Way, make_way

A_TRACE = 8  # questions a step, at most


def learn(lm: Any, traces: Sequence[Trace], way: str, steps: int, folder: Path) -> Iterator[int]:
    """Rehearse the traces into the model by a way, and write what was learnt to `folder`, in place of what lies there. Yields how many
    steps are done, from 0. The model is as it was when it ends, however it ends: `take_up` attaches.

    What was learnt lies in a folder of its own, which `lineage.json` names: until that is replaced, in one go, the earlier sleep's is there
    whole, also where this process is left, fails or is killed.

    LabError for an unknown way, for steps below 1, where nothing can be asked about the traces, and where the training diverges. OSError
    where the disk is full.
    """
    if steps < 1:
        raise LabError(f"steps is 1 or more, got {steps}")
    usual = SleepRecipe.model_fields["questions"].default
    questions = max(1, min(usual, A_TRACE * len(traces)))
    recipe = SleepRecipe(way=way, steps=steps, first_block=first_block(lm), questions=questions)
    attached = make_way(way, lm, recipe.rank, recipe.first_block)
    try:
        yield 0
        sleep = Sleep(recipe, lm, attached, traces, shuffled(len(traces), str(recipe.seed)))
        for step in range(steps):
            sleep.learn(step)
            yield step + 1
        rehearsed = [traces[place] for place in sorted({*sleep.order[: sleep.samples]})]
        lineage = {
            "model": {"name": lm.spec.name, "weights": checksums.weights(lm.spec.name)},
            "recipe": recipe.model_dump(),
            "sentences": {trace.source: trace.text for trace in rehearsed},
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        name = secrets.token_hex(8)
        with new_folder(folder / name) as new:
            attached.save(new)
        write_json(folder / LINEAGE, lineage | {"folder": name})
        for earlier in folder.iterdir():
            if earlier.is_dir() and earlier.name != name:
                shutil.rmtree(earlier, ignore_errors=True)
    finally:
        if not sys.is_finalizing():  # where the model goes too, and peft would wait for a thread that cannot begin any more
            attached.detach()


def take_up(lm: Any, folder: Path) -> Way:
    """What `learn` wrote, attached to the model. LabError where it is damaged or was learnt by another model."""
    made = read_object(folder / LINEAGE)
    try:
        model, recipe, learnt = made["model"], SleepRecipe.model_validate(made["recipe"]), folder / made["folder"]
        by, weights = model["name"], model["weights"]
    except (KeyError, TypeError, ValueError):
        raise LabError(f"{folder / LINEAGE} is damaged, or an earlier version's; sleep again, or remove the folder") from None
    if weights != checksums.weights(lm.spec.name):
        raise LabError(f"{folder} was learnt by {by} with other weights than {lm.spec.name} has; sleep again, or remove it")
    way = make_way(recipe.way, lm, recipe.rank, recipe.first_block)
    try:
        way.load(learnt)
    except BaseException:
        way.detach()
        raise
    return way

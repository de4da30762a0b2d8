"""Consolidate the traces of a live memory into its model, and load the update again, in this process or a later one."""

import secrets
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import check_seal, mark, new_folder, seal, write_sealed
from hippo_core.models import checksums
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation.lineage import LINEAGE, UPDATE_NAME, clear, is_own, read_lineage
from hippo_core.training.consolidation.sleep import Sleep, SleepRecipe, first_block, shuffled
from hippo_core.training.consolidation.update_rules import UpdateRule, make_update_rule
from hippo_core.training.consolidation.update_rules.base import FILE
from hippo_core.training.consolidation.update_rules.gated import GATE, GROUPS

A_TRACE = 8  # questions a step, at most
WRITTEN = {FILE, GATE, GROUPS}  # by the rules


def learn(lm: Any, traces: Sequence[Trace], update_rule: str, steps: int, folder: Path) -> Iterator[int]:
    """Rehearse the traces into the model by an update rule, and write what was learnt to `folder`. Yields how many steps are done, from 0.

    The model is as it was when it ends, however it ends: `load_update` attaches. What was learnt lies in a folder of its own, which
    `lineage.json` names: until that is replaced, in one go, the earlier sleep's is there whole.

    LabError for a folder that holds another's lineage file, an unknown rule, steps below 1, nothing that can be asked about the traces, and
    a training that diverges. OSError where the disk is full.
    """
    if steps < 1:
        raise LabError(f"steps is 1 or more, got {steps}")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise LabError(f"{folder} is a link or a file, where a folder is needed; move it away")
    if (folder / LINEAGE).exists() and not is_own(folder):
        raise LabError(f"{folder / LINEAGE} was not written by the lab; move it away, then sleep again")
    default = SleepRecipe.model_fields["questions"].default
    questions = max(1, min(default, A_TRACE * len(traces)))
    recipe = SleepRecipe(way=update_rule, steps=steps, first_block=first_block(lm), questions=questions)
    attached = make_update_rule(update_rule, lm, recipe.rank, recipe.first_block)
    try:
        yield 0
        sleep = Sleep(recipe, lm, attached, traces, shuffled(len(traces), str(recipe.seed)))
        for step in range(steps):
            sleep.learn(step)
            yield step + 1
        rehearsed = [traces[index] for index in sorted({*sleep.order[: sleep.samples]})]
        lineage = {
            "model": {"name": lm.spec.name, "weights": checksums.weights(lm.spec.name)},
            "recipe": recipe.model_dump(),
            "sentences": {trace.source: trace.text for trace in rehearsed},
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        name = secrets.token_hex(8)
        if not folder.exists():
            folder.mkdir(parents=True)
            mark(folder)
        with new_folder(folder / name) as new:
            attached.save(new)
        mark(folder / name)
        sealed = {file: seal(folder / name / file) for file in sorted(WRITTEN) if (folder / name / file).exists()}
        write_sealed(folder / LINEAGE, lineage | {"folder": name, "files": sealed})
        clear(folder, keep=name)
    finally:
        if not sys.is_finalizing():  # where the model goes too, and peft would wait for a thread that cannot begin any more
            attached.detach()


def load_update(lm: Any, folder: Path) -> UpdateRule:
    """What `learn` wrote, attached to the model. LabError where it is damaged or was learnt by another model."""
    made, update_folder = read_update(folder)
    try:
        model, recipe = made["model"], SleepRecipe.model_validate(made["recipe"])
        by, weights = model["name"], model["weights"]
    except (KeyError, TypeError, ValueError):
        raise LabError(f"{folder / LINEAGE} is damaged, or an earlier version's; sleep again, or remove the folder") from None
    if weights != checksums.weights(lm.spec.name):
        raise LabError(f"{folder} was learnt by {by} with other weights than {lm.spec.name} has; sleep again, or remove it")
    update_rule = make_update_rule(recipe.way, lm, recipe.rank, recipe.first_block)
    try:
        update_rule.load(update_folder)
    except BaseException:
        update_rule.detach()
        raise
    return update_rule


def read_update(folder: Path) -> tuple[dict[str, Any], Path]:
    """A live memory's lineage file and update folder, checked. LabError where it is damaged."""
    made = read_lineage(folder)
    name, files = str(made.get("folder")), made.get("files", {})
    if not UPDATE_NAME.fullmatch(name) or not isinstance(files, dict) or not files.keys() <= WRITTEN:
        raise LabError(f"{folder / LINEAGE} is damaged, or an earlier version's; sleep again, or remove the folder")
    for file, expected in files.items():
        check_seal(folder / name / file, expected, "sleep again, or wake")
    return made, folder / name

"""Consolidate the traces of a live memory into its model, load the update again, in this process or a later one, and merge it into a copy
of the model's weights."""

import errno
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import check_seal, mark, new_folder, read_object, seal, write_json, write_sealed
from hippo_core.models import checksums
from hippo_core.models.load import load, quiet
from hippo_core.models.spec import load_spec
from hippo_core.results.records.paths import DONE
from hippo_core.results.records.sealed import wrong_with
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation.lineage import LINEAGE, UPDATE_NAME, clear, is_own, read_lineage
from hippo_core.training.consolidation.sleep import Sleep, SleepRecipe, first_block, shuffled
from hippo_core.training.consolidation.update_rules import UpdateRule, make_update_rule
from hippo_core.training.consolidation.update_rules.base import FILE
from hippo_core.training.consolidation.update_rules.gated import GATE, GROUPS

FULL = os.strerror(errno.ENOSPC)
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
    recipe = read_recipe(made, folder, lm.spec.name)
    update_rule = make_update_rule(recipe.way, lm, recipe.rank, recipe.first_block)
    try:
        update_rule.load(update_folder)
    except BaseException:
        update_rule.detach()
        raise
    return update_rule


def read_recipe(made: dict[str, Any], folder: Path, model: str = "") -> SleepRecipe:
    """The recipe of a lineage file. LabError where it is damaged, or what was learnt belongs to a model of other weights than `model`, by
    default than the one that it names, has now."""
    try:
        recipe, name, weights = SleepRecipe.model_validate(made["recipe"]), made["model"]["name"], made["model"]["weights"]
    except (KeyError, TypeError, ValueError):
        raise LabError(f"{folder / LINEAGE} is damaged, or an earlier version's; sleep again, or remove the folder") from None
    if weights != checksums.weights(model or name):
        raise LabError(f"{folder} was learnt by {name} with other weights than {model or 'it'} has now; sleep again, or remove it")
    return recipe


def read_update(folder: Path) -> tuple[dict[str, Any], Path]:
    """A live memory's lineage file and update folder, checked. LabError where it is damaged."""
    made = read_lineage(folder)
    name, files = str(made.get("folder")), made.get("files", {})
    if not UPDATE_NAME.fullmatch(name) or not isinstance(files, dict) or not files.keys() <= WRITTEN:
        raise LabError(f"{folder / LINEAGE} is damaged, or an earlier version's; sleep again, or remove the folder")
    for file, expected in files.items():
        check_seal(folder / name / file, expected, "sleep again, or wake")
    return made, folder / name


def merge(consolidated: Path, out: Path) -> str:
    """Write the model with its update merged in, in float32, its tokenizer, and the lineage into a new folder; returns the model's name.

    `consolidated` is that folder of a record, or of a live memory. LabError where nothing, or something damaged, lies there, the model's
    weights are others by now or held in 4 bits, the way has no weights to add to every question, or `out` is there already.
    OSError where the disk is full.
    """
    if out.exists():
        raise LabError(f"{out} is there already; name a new folder")
    if not (consolidated / LINEAGE).is_file():
        raise LabError(f"{consolidated} holds no {LINEAGE}: expected the folder `consolidated` of a record or of a memory")
    record = consolidated.absolute().parent
    if (record / DONE).exists() and (wrong := wrong_with(record)):
        raise LabError(f"{record} is not as it was finished: {wrong[0]}; consolidate again")
    made, folder = read_object(consolidated / LINEAGE), consolidated
    if "folder" in made:  # a live memory's, which seals by itself
        made, folder = read_update(consolidated)
    recipe = read_recipe(made, consolidated)
    name = made["model"]["name"]
    spec = load_spec(name)
    if spec.quantization != "none":
        raise LabError(f"{name} holds its weights in 4 bits, into which nothing can be merged; set quantization: none in params/models")
    lm = load(spec, "cpu")
    update_rule = make_update_rule(recipe.way, lm, recipe.rank, recipe.first_block)
    update_rule.load(folder)
    model = update_rule.merged()
    with new_folder(out) as new, quiet():
        try:
            model.save_pretrained(new)
            lm.tokenizer.save_pretrained(new)
        except Exception as error:  # the libraries tell a full disk in words only
            raise OSError(errno.ENOSPC, FULL, str(out)) if FULL in str(error) else error from None
        write_json(new / LINEAGE, {**made, "merged_from": str(consolidated)})
    return name

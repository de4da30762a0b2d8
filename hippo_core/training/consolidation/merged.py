"""Merge what a sleep has learnt into a copy of the model's weights: a folder that any program loads as a plain model."""

import errno
import os
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import new_folder, read_object, write_json
from hippo_core.models import checksums
from hippo_core.models.load import load, quiet
from hippo_core.models.spec import load_spec
from hippo_core.results.records.paths import DONE
from hippo_core.results.records.sealed import wrong_with
from hippo_core.training.consolidation.lineage import LINEAGE
from hippo_core.training.consolidation.live import read_update
from hippo_core.training.consolidation.sleep import SleepRecipe
from hippo_core.training.consolidation.update_rules import make_update_rule

FULL = os.strerror(errno.ENOSPC)


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
    try:
        name, weights = made["model"]["name"], made["model"]["weights"]
        recipe = SleepRecipe.model_validate(made["recipe"])
    except (KeyError, TypeError, ValueError):
        raise LabError(f"{consolidated / LINEAGE} is damaged; consolidate again") from None
    if weights != checksums.weights(name):
        raise LabError(f"{consolidated} was learnt by {name} with other weights than it has now; consolidate again")
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

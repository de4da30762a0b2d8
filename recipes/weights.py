"""Trained models on disk: train or take up again, and ship what came out with how it was made."""

import json
import os
import platform
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerFast

from hippo_core.errors import LabError
from hippo_core.files import (
    MARK,
    check_seal,
    is_marked,
    made_folder,
    mark,
    new_folder,
    read_object,
    remove_made,
    require_checkout,
    root,
    seal,
    sha256,
    write_json,
    write_text,
)
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.text_files import require
from hippo_core.training.train import CHECKPOINT, Trainee, checkpoint, curve_of, train
from recipes import reader, tiny
from recipes import tokenizer as vocabulary
from recipes.reader import Reader, ReaderRecipe
from recipes.tiny import Recipe, Tiny

WEIGHTS, CHECKPOINT_DIR = "data/weights", "data/training"
SAVED_EVERY = 75  # steps of a reader: about ten minutes


def make_tiny(recipe: Recipe, say: Callable[[str], None] = print) -> Path:
    """Train hippo-tiny by a recipe (or go on where a killed run stopped) and put its weights in place; returns their folder.

    LabError, before anything starts, where the user's folder lacks one of the recipe's files (`tiny.DATA`), and where the weights' folder
    is not the lab's.
    """
    require_checkout("training")
    require(*tiny.DATA)
    folder, checkpoint_dir = root() / WEIGHTS / "hippo-tiny", root() / CHECKPOINT_DIR / "hippo-tiny"
    require_own(folder)
    tokenizer = make_tokenizer(recipe.seed, checkpoint_dir / "tokenizer")
    trainee = Tiny(recipe, tokenizer)
    train(trainee, checkpoint_dir, say)

    def fill(new: Path) -> None:
        trainee.model.config._attn_implementation = "sdpa"
        trainee.model.bfloat16().save_pretrained(new)
        tokenizer.save_pretrained(new)

    return ship(trainee, "make base-model", fill, checkpoint_dir / "log.jsonl", folder)


def make_reader(base: str, seed: int, steps: int = 0, say: Callable[[str], None] = print) -> Path:
    """Train a reader (or go on where a killed run stopped) and put its adapter in place; returns its folder.

    `steps` 0: as many as the recipe has. An adapter in place that ended an earlier descent of the rate is gone on from (`resume_from`).
    LabError, before anything starts, where the user's folder lacks one of the files `reader.DATA`, and where the adapter's folder is not
    the lab's.
    """
    require_checkout("training")
    require(*reader.DATA)
    recipe = ReaderRecipe(base=base, seed=seed, steps=steps or reader.STEPS)
    folder, checkpoint_dir = root() / WEIGHTS / f"{base}-reader", root() / CHECKPOINT_DIR / f"{base}-reader"
    require_own(folder)
    lm = load(load_spec(base).model_copy(update={"chat_template": "model"}), "cpu")  # in which the reader will be asked
    trainee = Reader(recipe, lm)
    resume_from(trainee, folder, checkpoint_dir, say)
    train(trainee, checkpoint_dir, say, SAVED_EVERY)

    def fill(new: Path) -> None:
        trainee.adapted.peft_config["default"].base_model_name_or_path = lm.spec.source
        trainee.adapted.bfloat16().save_pretrained(new)
        (new / "README.md").unlink(missing_ok=True)  # peft's empty card; the lab writes its own

    made_from = {"base": {"name": base, "sha256": sha256(lm.spec.path / "model.safetensors")}}
    return ship(trainee, f"make base-model MODEL={base}", fill, checkpoint_dir / "log.jsonl", folder, made_from)


def resume_from(trainee: Reader, folder: Path, checkpoint_dir: Path, say: Callable[[str], None]) -> None:
    """Begin the training in `workshop` where an adapter in `folder` ended, if it was trained by the same recipe to the end of an earlier
    descent; its optimizer begins anew. Nothing happens where the training has begun already."""
    made = read_object(folder / "training.json") if (folder / "training.json").exists() else {}
    ended = made.get("recipe", {}).get("steps", 0)
    same = made.get("recipe") == trainee.recipe.model_copy(update={"steps": ended}).model_dump(mode="json")
    earlier = list(accumulate(steps for steps, _ in reader.DESCENTS))[:-1] if trainee.recipe.steps == reader.STEPS else []
    if not same or ended not in earlier or (made_folder(checkpoint_dir) / CHECKPOINT).exists():
        return
    weights = folder / "adapter_model.safetensors"
    check_seal(weights, made["weights"][weights.name], f"move {folder} away to train anew")
    kept = load_file(weights)
    with torch.no_grad():
        for name, weight in trainee.weights().items():
            weight.copy_(kept[name.replace(".default.weight", ".weight")])
    write_text(checkpoint_dir / "log.jsonl", "".join(f"{json.dumps(line)}\n" for line in made["curve"]))
    checkpoint(trainee, ended, made["seconds"], checkpoint_dir)
    say(f"goes on from step {ended} of {folder}")


def make_tokenizer(seed: int, folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer of a seed: read where it was made before, else learnt."""
    if not folder.exists():
        with new_folder(folder) as new:
            vocabulary.train(seed).save_pretrained(new)
    return PreTrainedTokenizerFast.from_pretrained(folder, trust_remote_code=False)


def ship(trainee: Trainee, command: str, fill: Callable[[Path], None], log: Path, folder: Path, more: dict | None = None) -> Path:
    """Write the folder whole, with `training.json`, which seals its weights: what was there before is replaced only when the new one is
    complete. LabError where a folder in its place is not the lab's."""
    old, complete = folder.with_name(f".{folder.name}.old"), folder.with_name(f"{folder.name}.new")
    for folder_to_check in (folder, old, complete):
        require_own(folder_to_check)
    curve = curve_of(log.parent)
    made = {"recipe": trainee.recipe.model_dump(), "command": command, "seconds": curve[-1]["seconds"], "torch": torch.__version__}
    machine = {"machine": platform.machine(), "threads": trainee.recipe.threads}
    for left in (old, complete):  # by a run that was killed
        remove_made(left)
    with new_folder(complete) as new:
        fill(new)
        weights = {path.name: seal(path) for path in sorted(new.glob("*.safetensors"))}
        write_json(new / "training.json", made | machine | (more or {}) | {"weights": weights, "curve": curve})
    mark(complete)
    if folder.exists():
        folder.rename(old)
    complete.rename(folder)
    remove_made(old)
    return folder


def require_own(folder: Path) -> None:
    """LabError where something lies in a folder's place that the lab did not make: it is never replaced."""
    if os.path.lexists(folder) and not is_marked(folder):
        raise LabError(f"{folder} would be replaced, and was not made by the lab (it has no {MARK}); move it away")

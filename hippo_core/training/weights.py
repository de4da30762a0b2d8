"""Trained models on disk: train or take up again, and ship what came out with how it was made."""

import json
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from hippo_core.files import mark, new_folder, remove_made, require_checkout, root, sha256, write_json
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.text_files import require
from hippo_core.training import reader, tiny
from hippo_core.training import tokenizer as vocabulary
from hippo_core.training.reader import PUBLISHED, RECIPES, Reader, ReaderRecipe
from hippo_core.training.tiny import Recipe, Tiny
from hippo_core.training.train import Trainee, train

WEIGHTS, WORKSHOP = "data/weights", "data/training"
ADAPTER = "adapter_model.safetensors"
SAVED_EVERY = 75  # steps of a reader: about ten minutes
BEFORE = ("recipe", "seconds", "threads", "remark", "before")  # what is kept of how the edition before was made


def make_tiny(recipe: Recipe, say: Callable[[str], None] = print) -> Path:
    """Train hippo-tiny by a recipe (or go on where a killed run stopped) and put its weights in place; returns their folder.

    LabError, before anything starts, where the user's folder lacks one of the recipe's files (`tiny.DATA`).
    """
    require_checkout("training")
    require(*tiny.DATA)
    workshop = root() / WORKSHOP / "hippo-tiny"
    tokenizer = make_tokenizer(recipe.seed, workshop / "tokenizer")
    trainee = Tiny(recipe, tokenizer)
    train(trainee, workshop, say)

    def fill(folder: Path) -> None:
        trainee.model.config._attn_implementation = "sdpa"
        trainee.model.bfloat16().save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    return ship(trainee, "make base-model", fill, workshop / "log.jsonl", root() / WEIGHTS / "hippo-tiny")


def make_reader(base: str, seed: int, steps: int = 0, say: Callable[[str], None] = print) -> Path:
    """Train a reader's last edition (or go on where a killed run stopped) and put the adapter in place; returns its folder.

    It goes on from the edition before: the adapter in place where that is a published one, else all editions are trained in turn.
    `steps`: of the last edition; 0: as many as its recipe has. LabError, before anything starts, where the user's folder lacks one of
    the files `reader.DATA`.
    """
    require_checkout("training")
    require(*reader.DATA)
    name = f"{base}-reader"
    place, workshop = root() / WEIGHTS / name, root() / WORKSHOP / name
    _take_published(place, workshop)
    *earlier, last = RECIPES
    start = next((number for number in range(len(earlier), 0, -1) if (workshop / earlier[number - 1].edition).exists()), 0)
    for recipe in earlier[start:]:
        _make_edition(_going_on(recipe, base, seed, workshop), workshop, workshop / recipe.edition, say)
    recipe = _going_on(last, base, seed, workshop)
    return _make_edition(recipe.model_copy(update={"steps": steps or last.steps}), workshop, place, say)


def _take_published(place: Path, workshop: Path) -> None:
    edition = PUBLISHED.get(sha256(place / ADAPTER)) if (place / ADAPTER).exists() else None
    if edition and not (workshop / edition).exists():
        with new_folder(workshop / edition) as new:
            for file in (ADAPTER, "training.json"):
                shutil.copyfile(place / file, new / file)


def _before(edition: str, workshop: Path) -> Path | None:
    """Where the edition lies that this one goes on from; None of the first."""
    editions = [recipe.edition for recipe in RECIPES]
    number = editions.index(edition)
    return workshop / editions[number - 1] if number else None


def _going_on(recipe: ReaderRecipe, base: str, seed: int, workshop: Path) -> ReaderRecipe:
    before = _before(recipe.edition, workshop)
    return recipe.model_copy(update={"base": base, "seed": seed, "start": sha256(before / ADAPTER) if before else ""})


def _make_edition(recipe: ReaderRecipe, workshop: Path, folder: Path, say: Callable[[str], None]) -> Path:
    """Train one edition, with checkpoints in a folder of its own below `workshop`, and ship it to `folder`."""
    before = _before(recipe.edition, workshop)
    base = load(load_spec(recipe.base).model_copy(update={"chat_template": "model"}), "cpu")  # in which the reader will be asked
    trainee = Reader(recipe, base, before and before / ADAPTER)
    checkpoints = workshop / f"checkpoints-{recipe.edition}"
    train(trainee, checkpoints, say, SAVED_EVERY)

    def fill(folder: Path) -> None:
        trainee.adapted.peft_config["default"].base_model_name_or_path = base.spec.source
        trainee.adapted.bfloat16().save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)  # peft's empty card; the lab writes its own

    made_from: dict[str, Any] = {"base": {"name": recipe.base, "sha256": sha256(base.spec.path / "model.safetensors")}}
    if before:
        made = json.loads((before / "training.json").read_text(encoding="utf-8"))
        made_from["before"] = {key: made[key] for key in BEFORE if key in made}
    return ship(trainee, f"make base-model MODEL={recipe.base}", fill, checkpoints / "log.jsonl", folder, made_from)


def make_tokenizer(seed: int, folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer of a seed: read where it was made before, else learnt."""
    if not folder.exists():
        with new_folder(folder) as new:
            vocabulary.train(seed).save_pretrained(new)
    return PreTrainedTokenizerFast.from_pretrained(folder, trust_remote_code=False)


def ship(trainee: Trainee, command: str, fill: Callable[[Path], None], log: Path, folder: Path, more: dict | None = None) -> Path:
    """Write the folder whole, with `training.json`: what was there before is replaced only when the new one is complete."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    curve = list({line["step"]: line for line in lines}.values())  # a resumed run logs some steps twice
    made = {"recipe": trainee.recipe.model_dump(), "command": command, "seconds": curve[-1]["seconds"], "torch": torch.__version__}
    machine = {"machine": platform.machine(), "threads": trainee.recipe.threads}
    old, complete = folder.with_name(f".{folder.name}.old"), folder.with_name(f"{folder.name}.new")
    remove_made(old)
    with new_folder(complete) as new:
        fill(new)
        write_json(new / "training.json", made | machine | (more or {}) | {"curve": curve})
    if folder.exists():
        mark(folder)
        folder.rename(old)
    complete.rename(folder)
    remove_made(old)
    return folder

"""hippo-tiny on disk: train it or take it up again, and ship its weights: bf16 safetensors, configuration, tokenizer, how it was made."""

import json
import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from hippo_core.files import new_folder, root, write_json
from hippo_core.protocols.base_model import tokenizer as vocabulary
from hippo_core.protocols.base_model.train import Recipe, train

WEIGHTS = "data/weights/hippo-tiny"
WORKSHOP = "data/training/hippo-tiny"


def make(recipe: Recipe, say: Callable[[str], None] = print) -> Path:
    """Train hippo-tiny by a recipe (or go on where a killed run stopped) and put its weights in place; returns their folder."""
    workshop = root() / WORKSHOP
    tokenizer = make_tokenizer(recipe.seed, workshop / "tokenizer")
    model = train(recipe, tokenizer, workshop, say)
    return ship(model, tokenizer, recipe, workshop / "log.jsonl", root() / WEIGHTS)


def make_tokenizer(seed: int, folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer of a seed: read where it was made before, else learnt."""
    if not folder.exists():
        with new_folder(folder) as new:
            vocabulary.train(seed).save_pretrained(new)
    return PreTrainedTokenizerFast.from_pretrained(folder)


def ship(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, recipe: Recipe, log: Path, folder: Path) -> Path:
    """Write the folder whole: what was there before is replaced only when the new one is complete."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    curve = list({line["step"]: line for line in lines}.values())  # a resumed run logs some steps twice
    made = {"recipe": recipe.model_dump(), "command": "make base-model", "seconds": curve[-1]["seconds"], "torch": torch.__version__}
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    with new_folder(folder.with_name(f"{folder.name}.new")) as new:
        model.config._attn_implementation = "sdpa"
        model.bfloat16().save_pretrained(new)
        tokenizer.save_pretrained(new)
        write_json(new / "training.json", made | {"machine": platform.machine(), "threads": recipe.threads, "curve": curve})
    if folder.exists():
        folder.rename(old)
    folder.with_name(f"{folder.name}.new").rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    return folder

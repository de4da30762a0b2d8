"""Trace adapters: the recipe of each model that has one, fitting it, and its results beside the other deliveries."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from hippo_core.delivery import load_delivery
from hippo_core.delivery.adapter import AdapterDelivery
from hippo_core.delivery.trace_adapter import AdapterSettings, TraceAdapter, save_adapter
from hippo_core.delivery.types import Delivery
from hippo_core.errors import unknown
from hippo_core.files import require_checkout
from hippo_core.files import root as repository
from hippo_core.models.artifacts import folder_of, read_part
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of
from hippo_core.models.spec import load_spec
from hippo_core.training.train import train
from recipes.injection_eval import compare_deliveries
from recipes.trace_adapter import AdapterRecipe, AdapterTrainee
from recipes.weights import CHECKPOINT_DIR

# After which blocks: hippo-tiny was taught to find facts and answers in these three; of the reader's thirty, those where at gate 0 the
# loss falls fastest with an opening gate (48 questions of training lessons).
RECIPES = {
    "hippo-tiny": AdapterRecipe(model="hippo-tiny", shape=AdapterSettings(blocks=(2, 3, 4)), autocast=False),
    "smollm2-135m-reader": AdapterRecipe(
        model="smollm2-135m-reader", shape=AdapterSettings(blocks=(17, 18, 20, 23, 24)), steps=240, lessons=2, rate=2e-3
    ),
}


def fit_adapter_if(wanted: bool, model: str, seed: int, steps: int, say: Callable[[str], None] = print) -> str:
    """Fit the model's trace adapter if wanted, and install it; returns what was done.

    `steps` 0: as many as the recipe has. LabError for a model without a recipe.
    """
    if not wanted:
        return "the trace adapter is left as it is (adapter = False)"
    if model not in RECIPES:
        raise unknown("model with a recipe for a trace adapter", model, RECIPES)
    changes: dict[str, Any] = {"seed": seed} | ({"steps": steps} if steps else {})
    return f"trace adapter in {make_adapter(RECIPES[model].model_copy(update=changes), say)}"


def make_adapter(recipe: AdapterRecipe, say: Callable[[str], None] = print, n: int = 100) -> Path:
    """Fit a trace adapter by a recipe (or go on where a killed run stopped), compare it with the other ways on `n` validation
    questions, and write both beside the model's weights; returns their folder."""
    require_checkout("training")
    lm = load(load_spec(recipe.model), "cpu", recipe.threads)
    trainee, checkpoint_dir = AdapterTrainee(recipe, lm), repository() / CHECKPOINT_DIR / f"{recipe.model}-adapter"
    train(trainee, checkpoint_dir, say, every=100)
    trainee.adapter.eval().requires_grad_(False)
    table = compare_deliveries(deliveries(lm, trainee.adapter), n)
    curve = list({line["step"]: line for line in map(json.loads, (checkpoint_dir / "log.jsonl").read_text("utf-8").splitlines())}.values())
    made = {
        "command": f"make base-model-adapter MODEL={recipe.model}",
        "date": datetime.now(UTC).date().isoformat(),
        "torch": torch.__version__,
        "seconds": curve[-1]["seconds"],
        "recipe": recipe.model_dump(mode="json"),
        "val": table.to_dict("records"),
        "curve": curve,
    }
    save_adapter(trainee.adapter, lm, folder_of(lm), made)
    return folder_of(lm)


def deliveries(lm: LanguageModel, adapter: TraceAdapter) -> dict[str, Delivery]:
    """All ways to a loaded model, with this adapter."""
    passage_kv = PassageKV(lm, prefix_of(lm, "short"), blocks=adapter.settings.blocks)
    return {"text": load_delivery("text", lm), "kv": load_delivery("kv", lm), "adapter": AdapterDelivery(lm, adapter, passage_kv)}


def adapter_table(lm: LanguageModel) -> pd.DataFrame:
    """What was measured when the model's trace adapter was fitted; empty where it has none."""
    there = (folder_of(lm) / "adapter.json").is_file()
    return pd.DataFrame(read_part(lm, "adapter")["val"] if there else [])

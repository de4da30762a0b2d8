"""What a memory needs of a model and is fitted for it: its key, then the weights of its channels, each written as soon as it is there."""

from collections.abc import Callable
from datetime import date

import pandas as pd
import torch

from hippo_core.methods.episodic.components import load_key_model
from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.models.artifacts import folder_of, read_part, save_part
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.packages.pins import available
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.key_encoder import BlockStates
from hippo_core.retrieval.recall import RecallConfig
from hippo_core.retrieval.text_encoder import KeyEncoder, KeysAndVectors, VectorEncoder
from recipes.key import KeyRecipe, train_key
from recipes.recall_weights import DEFAULT, FITTED, SEED, fit_weights

SMALL = 16  # blocks of a model whose words are learnt in two


def key_recipe(lm: LanguageModel, seed: int) -> KeyRecipe:
    """The recipe for a model: of a deep one the embeddings and what a quarter of its blocks make of them, from fewer rooms."""
    depth = lm.config.num_hidden_layers
    return KeyRecipe(seed=seed) if depth <= SMALL else KeyRecipe(seed=seed, blocks=(0, round(depth / 4)), rooms=360, steps=900)


def fit_key(lm: LanguageModel, seed: int, command: str, say: Callable[[str], None] = print) -> None:
    """Fit the key and write it beside the model's weights, in half precision."""
    recipe = key_recipe(lm, seed)
    head = train_key(BlockStates(lm, recipe.blocks), recipe, say)
    made = {"settings": head.settings.model_dump(mode="json"), "recipe": recipe.model_dump(mode="json"), **provenance(command)}
    save_part(lm, "key", made, head.half())  # half as large; it is read as single precision


def fit_recall(lm: LanguageModel, command: str, say: Callable[[str], None] = print) -> None:
    """Fit the weights with the key that is there, for the settings that memories have by default, and write them with their table."""
    default = HeiNWSettings().episodic
    keys = KeyEncoder(load_key_model(lm), default.code.expansion, default.code.winners)
    encoder = keys if available("minilm") else KeysAndVectors(keys, VectorEncoder(str(lm.device)))
    config = RecallConfig(
        "off", default.recall.candidates, default.predictive.candidates, default.hopfield.beta, default.hopfield.steps, {}
    )
    channels = DEFAULT if available("minilm") else FITTED
    weights, table = fit_weights(lm, encoder, config, channels, say)
    settings = {"code": default.code.model_dump(mode="json"), "hopfield": default.hopfield.model_dump(mode="json"), "seed": SEED}
    save_part(lm, "recall", {"weights": weights, "fitted_with": settings, **provenance(command), "validation": table.to_dict("records")})


def provenance(command: str) -> dict[str, str]:
    """Command, day and library."""
    return {"command": command, "date": date.today().isoformat(), "torch": torch.__version__}


def fit_memory_if(memory: bool, memory_weights: bool, model: str, seed: int) -> str:
    """Fit key and weights of a model, or the weights alone with the key that is there; says where they lie."""
    if not (memory or memory_weights):
        return "the memory's key and weights are left as they are (memory = False, memory_weights = False)"
    lm = load(load_spec(model), threads=1)
    if memory:
        fit_key(lm, seed, f"make memory MODEL={model}")
    fit_recall(lm, f"make {'memory' if memory else 'memory-weights'} MODEL={model}")
    return f"{'key and weights' if memory else 'weights'} in {folder_of(lm)}"


def recall_table(lm: LanguageModel) -> pd.DataFrame:
    """What the weights of a model found on the worlds that they were fitted on; empty where there are none."""
    if not (folder_of(lm) / "recall.json").is_file():
        return pd.DataFrame(columns=["channels", "completion", "suite", "n_facts", "rung", "recall_1", "recall_3", "recall_10", "n"])
    return pd.DataFrame(read_part(lm, "recall")["validation"])

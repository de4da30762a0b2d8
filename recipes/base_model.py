"""What notebook 00 calls: how the lab's own models come into being, what they can do, and the card that says so.

hippo-tiny is trained from nothing; a reader is a small adapter on a pretrained model; a trace adapter lets either look at recalled traces.
"""

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.results.frames import Frame
from recipes import card
from recipes.abstention import abstention_table, fit_abstention_if
from recipes.adapters import adapter_table, fit_adapter_if
from recipes.card import Measured, measure, records, skills_figure
from recipes.memory_parts import fit_memory_if, recall_table
from recipes.skills import COLUMNS
from recipes.tiny import Recipe
from recipes.weights import make_reader, make_tiny

__all__ = [
    "Measured",
    "abstention_table",
    "adapter_table",
    "fit_abstention_if",
    "fit_adapter_if",
    "fit_memory_if",
    "measure_if",
    "recall_table",
    "records",
    "sentence",
    "skills_figure",
    "skills_of",
    "train_if",
    "write_card_if",
]
READERS = {"smollm2-135m": "smollm2-135m-reader"}


def train_if(wanted: bool, model: str, seed: int, steps: int) -> str:
    """Train where that is wanted: hippo-tiny from nothing, smollm2-135m to a reader; returns the name of the model to measure.

    `steps` 0: as many as the recipe has. LabError for a model without a recipe, or without its recipe's files in the user's folder
    (data/README.md).
    """
    if not wanted:
        return model
    if model == "hippo-tiny":
        folder = make_tiny(Recipe(seed=seed, steps=steps) if steps else Recipe(seed=seed))
    elif model in READERS:
        folder = make_reader(model, seed, steps)
    else:
        legal = ", ".join(["hippo-tiny", *READERS])
        raise LabError(f"train=true makes hippo-tiny, or a reader; {model!r} has no recipe (those that have: {legal}); set train=false")
    print(f"weights in {folder}")
    return folder.name


def measure_if(n: int, lm: LanguageModel) -> Measured | None:
    """What the model can read, by so many questions a skill; nothing is measured where there are none."""
    return measure(lm, n) if n else None


def skills_of(measured: Measured | None) -> Frame:
    """The skills' table, without a row where nothing was measured."""
    return measured.skills if measured else pd.DataFrame(columns=list(COLUMNS))


def write_card_if(wanted: bool, lm: LanguageModel, measured: Measured | None) -> str:
    """Write the card where that is wanted; says what the measurement finds different from the one that was there. LabError without one."""
    if not wanted:
        return "the card is left as it is (card = False)"
    if measured is None:
        raise LabError("a card is written from what was measured: give the number of questions a skill, n = 200")
    folder = card.folder_of(lm)
    changed = card.differences(measured.skills, folder)
    path = card.write_card(lm, measured, folder)
    return "\n".join([*(changed or ["every number of the card holds"]), f"card: {path}"])


def sentence(lm: LanguageModel, measured: Measured | None) -> str:
    """The result in one sentence, from its numbers."""
    if measured is None:
        return f"What {lm.spec.name} can read was not measured (n = 0)."
    judged = measured.skills[measured.skills["goal"].notna()]
    tail = f"the perplexity of Python's manual is {measured.language['python_manual']['perplexity']:.1f}."
    if judged.empty:
        best = measured.skills.loc[measured.skills["accuracy"].idxmax()]
        return f'{lm.spec.name} has no goals; its best skill is "{best["skill"]}" with {best["accuracy"]:.2f}; {tail}'
    n_met = int((judged["accuracy"] >= judged["goal"]).sum())
    worst = judged.loc[(judged["accuracy"] - judged["goal"]).idxmin()]
    return (
        f'{lm.spec.name} reaches {n_met} of {len(judged)} goals; furthest from its goal is "{worst["skill"]}" with {worst["accuracy"]:.2f} '
        f"for {worst['goal']:.2f}; {tail}"
    )

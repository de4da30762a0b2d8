"""Trace adapters: the recipe of each model that has one, fitting it, and its results beside the other deliveries."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from hippo_core.delivery import load_delivery
from hippo_core.delivery.adapter import AdapterDelivery
from hippo_core.delivery.trace_adapter import AdapterSettings, TraceAdapter, save_adapter
from hippo_core.delivery.types import Delivery, Question
from hippo_core.errors import unknown
from hippo_core.files import require_checkout
from hippo_core.files import root as repository
from hippo_core.models.artifacts import folder_of, read_part
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of
from hippo_core.models.spec import load_spec
from hippo_core.results.scores import score_item
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Item, World
from hippo_core.training.train import curve_of, train
from recipes.memory_parts import provenance
from recipes.skills import SEED
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
TRACES = (1, 3, 5)


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
    curve = curve_of(checkpoint_dir)
    made = {
        **provenance(f"make base-model-adapter MODEL={recipe.model}"),
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


def compare_deliveries(
    deliveries: Mapping[str, Delivery], n: int = 200, traces: Sequence[int] = TRACES, suite: str = "episodic"
) -> pd.DataFrame:
    """What is answered with the right trace among others, the gold facts given, on validation worlds of a seed that no experiment uses.
    One row a way and number of traces, and one with all masked: items, worlds, EM with its 95 % interval, cost a question."""
    pairs = [(world, item) for world in worlds(suite, "default", n, SEED, "val") for item in world.items]
    rows = [_row(name, delivery, suite, pairs, count, masked=False) for count in traces for name, delivery in deliveries.items()]
    return pd.DataFrame([*rows, *(_row(name, delivery, suite, pairs, traces[-1], masked=True) for name, delivery in deliveries.items())])


def _row(name: str, delivery: Delivery, suite: str, pairs: Sequence[tuple[World, Item]], count: int, *, masked: bool) -> dict[str, Any]:
    budget = get_suite(suite).answer_budget
    answers = delivery.ask([question(world, item, count) for world, item in pairs], budget, masked=masked)
    marks = [score_item(get_suite(suite), *pair, answer.text)["score"] for pair, answer in zip(pairs, answers, strict=True)]
    interval = cluster_interval(marks, [world.id for world, _ in pairs])

    def mean(cost: str) -> float:
        return round(sum(getattr(answer, cost) for answer in answers) / len(answers), 1)

    return {
        "inject": name,
        "traces": count,
        "masked": masked,
        "n": len(pairs),
        "worlds": len({world.id for world, _ in pairs}),
        "em": sum(marks) / len(marks),
        "low": interval.low,
        "high": interval.high,
        "trace_tokens": mean("trace_tokens"),
        "prompt_tokens": mean("prompt_tokens"),
        "computed_tokens": mean("computed_tokens"),
        "ms": mean("latency_ms"),
    }


def question(world: World, item: Item, count: int) -> Question:
    """An item with its gold facts among distractors, `count` in all where there are so many, in order of telling."""
    others = [fact for fact in item.taught if fact not in item.gold_facts]
    extra = min(len(others), max(0, count - len(item.gold_facts)))
    shown = {*item.gold_facts, *Random(f"{item.id}/{count}").sample(others, extra)}
    return Question.of_texts(item.question, tuple(fact.text for fact in world.facts if fact.id in shown))

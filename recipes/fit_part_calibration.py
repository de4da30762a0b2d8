"""Fit how far the arbiter of a composite believes its memories: of each, how often it is right that is so sure of what it found so.

Every memory of `memory/all` is taught validation worlds of all kinds: events, versions, relations in the lab's words and in anyone's, ways,
and mixed ones. It is asked each question by itself, whichever kind it is. A logistic function of what speaks for what it brings is fitted
to whether its answer is right; each kind of world counts the same, but for `COUNTS`. It goes by hand into params/presets/memory/all.yaml.
Nothing of a test world is seen.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.evaluation.run import AnsweredItem, ask
from hippo_core.methods.composite import ConfidenceCalibration, evidence
from hippo_core.methods.presets import Preset, load_preset
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.questions.run import teach
from hippo_core.results.scores import score_item
from hippo_core.retrieval.confidence import fit
from hippo_core.store import TraceStore, store_path
from hippo_core.suites import get_suite
from hippo_core.suites.draw import CONTEXT_LIMIT, worlds
from hippo_core.suites.types import Suite, World
from recipes.recall_weights import SEED

PRESET = "memory/all"
MODEL = "smollm2-135m-reader"
KINDS = {"episodic": 30, "episodic_multi": 30, "semantic": 40, "relations": 60, "spatial": 30, "mixed": 60}  # questions of each
COUNTS = {"relations": 2.0}  # how much a kind counts, others 1: it is the one in anyone's words


def judged(preset: str, suites: dict[str, int] = KINDS, model: str = MODEL) -> Iterator[dict[str, object]]:
    """One row a part of the preset and a question that it says something of: `part`, `suite`, its evidence, and whether it was `right`."""
    lm = load(load_spec(model), threads=1)
    for name, n in suites.items():
        suite = get_suite(name)
        asked, others = (list(worlds(name, "default", n, seed, "val", CONTEXT_LIMIT)) for seed in (SEED, SEED + 1))
        answers = {part: _answers(lm, part, memory, suite, asked, others) for part, memory in load_preset(preset).settings.memories.items()}
        for answered_items in zip(*answers.values(), strict=True):
            retrieved = [answered.retrieved for answered in answered_items]
            for part, answered in zip(answers, answered_items, strict=True):
                if (own := answered.retrieved).confidence is not None:
                    spoken = evidence(own, [other for other in retrieved if other is not own])
                    yield {"part": part, "suite": name, **spoken, "right": is_right(suite, answered)}


def _answers(
    lm: LanguageModel, part: str, preset: Preset, suite: Suite, asked: Sequence[World], others: Sequence[World]
) -> list[AnsweredItem]:
    """Every question of the worlds, asked with one memory alone that was taught them."""
    method: Any = preset.method(lm, preset.settings)
    with TemporaryDirectory() as folder:
        teach(method, suite, asked, others, Path(folder), part)
        with TraceStore.open(store_path(Path(folder), part, method.algorithm()), part, method.identity(), read_only=True) as store:
            return list(ask(suite, asked, method, "delayed", {world.id: store.traces(world.id) for world in asked}, 32))


def is_right(suite: Suite, answered: AnsweredItem) -> float:
    """Whether an answer is right, as the suite is scored."""
    scores = score_item(suite, answered.world, answered.item, answered.answer.text)
    path = scores.get("success", np.nan)
    return float(scores["em_norm"] if path is None or np.isnan(path) else path)


def evidence_names() -> list[str]:
    """The names of the evidence for a part's result."""
    return [name for name in ConfidenceCalibration.model_fields if name != "bias"]


def fitted(rows: pd.DataFrame) -> ConfidenceCalibration:
    """The function for one part."""
    names = evidence_names()
    sizes = rows.groupby("suite")["suite"].transform("size").to_numpy(float)
    weight = np.array([COUNTS.get(suite, 1.0) for suite in rows["suite"]]) / sizes
    function = fit([dict(zip(names, values, strict=True)) for values in rows[names].to_numpy(float)], rows["right"].to_numpy(float), weight)
    return ConfidenceCalibration(bias=round(function.bias, 2), **{name: round(value, 2) for name, value in function.weights.items()})


def main() -> None:
    """Fit, and say what belongs into the preset, and how sure each memory then is where it is right and where it is not."""
    rows = pd.DataFrame(judged(PRESET))
    for part, own in rows.groupby("part", sort=False):
        if len(set(own["right"])) < 2:
            print(f"  {part}: always right or always wrong where it says something; nothing to fit")
            continue
        trust = fitted(own)
        names = evidence_names()
        own = own.assign(sure=[trust.of(dict(zip(names, values, strict=True))) for values in own[names].to_numpy(float)])
        print(f"  {part}: {{{', '.join(f'{name}: {value}' for name, value in trust.model_dump().items())}}}")
        print(own.groupby(["suite", "right"])[["confidence", "sure"]].agg(["mean", "size"]).round(2).to_string(), flush=True)


if __name__ == "__main__":
    main()

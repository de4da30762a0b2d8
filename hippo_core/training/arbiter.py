"""Fit how far the arbiter of a composite believes its memories: of each, how often it is right that is so sure of what it found so.

Every memory of `memory/all` is taught validation worlds of all kinds, events, relations, ways and mixed ones, and asked each
question by itself, whichever kind it is. A logistic function of what it says of itself is fitted to whether its answer is right; each
kind of world counts the same. It goes by hand into params/presets/memory/all.yaml. Nothing of a test world is seen.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.experiments.answer.run import AnsweredItem, ask
from hippo_core.experiments.memory.run import teach
from hippo_core.methods.composite import Trust, evidence
from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.scores import score_item
from hippo_core.retrieval.confidence import fit
from hippo_core.store import TraceStore, store_path
from hippo_core.suites import get_suite
from hippo_core.suites.datasets.build import CONTEXT_LIMIT, worlds
from hippo_core.suites.types import Suite
from hippo_core.training.recall_weights import SEED

PRESET = "memory/all"
KINDS = {"episodic": 60, "semantic": 60, "spatial": 60, "mixed": 120}  # questions of each


def judged(preset: str, suites: dict[str, int] = KINDS) -> Iterator[dict[str, object]]:
    """One row a part of the preset and a question that it says something of: `part`, `suite`, its evidence, and whether it was `right`."""
    lm = load(load_spec("hippo-tiny"), threads=1)
    for name, n in suites.items():
        suite = get_suite(name)
        asked, others = (list(worlds(name, "default", n, seed, "val", CONTEXT_LIMIT)) for seed in (SEED, SEED + 1))
        for part, one in load_preset(preset).settings.memories.items():
            method: Any = one.method(lm, one.settings)
            with TemporaryDirectory() as folder:
                teach(method, suite, asked, others, Path(folder), part)
                file = store_path(Path(folder), part, method.algorithm())
                with TraceStore.open(file, part, method.identity(), read_only=True) as store:
                    traces = {world.id: store.traces(world.id) for world in asked}
            for answered in ask(suite, asked, method, "delayed", traces, 32):
                if answered.retrieved.confidence is not None:
                    yield {"part": part, "suite": name, **evidence(answered.retrieved), "right": is_right(suite, answered)}


def is_right(suite: Suite, answered: AnsweredItem) -> float:
    """Whether an answer is right, as the suite is scored."""
    scores = score_item(suite, answered.world, answered.item, answered.answer.text)
    path = scores.get("success", np.nan)
    return float(scores["em_norm"] if path is None or np.isnan(path) else path)


def fitted(rows: pd.DataFrame) -> Trust:
    """The function for one part."""
    names = list(Trust.model_fields.keys() - {"bias"})
    weight = 1 / rows.groupby("suite")["suite"].transform("size").to_numpy(float)
    found = fit([dict(zip(names, values, strict=True)) for values in rows[names].to_numpy(float)], rows["right"].to_numpy(float), weight)
    return Trust(bias=round(found.bias, 2), **{name: round(value, 2) for name, value in found.weights.items()})


def main() -> None:
    """Fit, and say what belongs into the preset, and how sure each memory then is where it is right and where it is not."""
    rows = pd.DataFrame(judged(PRESET))
    for part, own in rows.groupby("part", sort=False):
        if len(set(own["right"])) < 2:
            print(f"  {part}: always right or always wrong where it says something; nothing to fit")
            continue
        trust = fitted(own)
        own = own.assign(sure=[trust.of({"confidence": a, "restated": b}) for a, b in zip(own["confidence"], own["restated"], strict=True)])
        print(f"  {part}: {{{', '.join(f'{name}: {value}' for name, value in trust.model_dump().items())}}}")
        print(own.groupby(["suite", "right"])[["confidence", "sure"]].agg(["mean", "size"]).round(2).to_string(), flush=True)


if __name__ == "__main__":
    main()

"""What a remembered answer costs: ways of choosing one fact and putting it before the question, in turn; and what a gate costs.

python benchmarks/memory/questions.py [MODEL ...]        (hippo-tiny; rags by vectors need `make models`; QUESTIONS=100)

Times are those of rows: to choose (recall and completion, or retrieval), to answer (what is shown included), and, apart, to run a trace
that is met for the first time to keys and values, which a memory does once a trace and a rag at every question.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import pandas as pd
import torch

from hippo_core import delivery as deliveries
from hippo_core.errors import LabError
from hippo_core.evaluation.run import answer
from hippo_core.methods.base import Method, Observation
from hippo_core.methods.presets import load_preset
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.questions.run import teach, test
from hippo_core.store.paths import existing
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import World

FACTS, ITEMS, ROUNDS, SESSION = 128, 25, 3, "benchmark"
QUESTIONS = int(os.environ.get("QUESTIONS", "100"))
PASSES = {"episodic.use_gate": True, "episodic.gate.write_rate": 1.0}
RAGS = {
    "no facts": ("baselines/span_short", {}),
    "rag_bm25": ("baselines/rag_bm25", {"k": 1}),
    "rag_dense, minilm": ("baselines/rag_dense", {"k": 1, "encoder": "minilm"}),
    "rag_sum_head": ("baselines/rag_sum_head", {"k": 1}),
    "rag_head_fitted": ("baselines/rag_head_fitted", {"k": 1}),
    "rag_rerank, minilm": ("baselines/rag_rerank", {"k": 1, "encoder": "minilm"}),
}
MEMORIES = {
    "memory": "memory/hei_nw",
    "memory, hopfield": "ablations/hopfield",
    "memory, predictive": "ablations/predictive",
    "memory, as text": "memory/hei_nw_text",
}
COLUMNS = ["retrieval_ms", "latency_ms", "encode_ms", "computed_tokens", "once_tokens", "score"]


def methods(lm: LanguageModel, store: Path) -> dict[str, Callable[[], pd.DataFrame]]:
    """Each way of answering the same questions, those of the memory from one store."""
    suite, drawn_worlds = get_suite("episodic"), drawn(lm)
    teach(bound(lm, "memory/hei_nw"), suite, drawn_worlds, [], store, SESSION)

    def rag(name: str, settings: dict[str, object]) -> Callable[[], pd.DataFrame]:
        return lambda: answer(lm, suite, drawn_worlds, bound(lm, name, settings)).assign(encode_ms=0.0)

    def memory(name: str) -> Callable[[], pd.DataFrame]:
        return lambda: test(bound(lm, name), suite, drawn_worlds, "delayed", stored(store))

    return {name: rag(*preset) for name, preset in RAGS.items()} | {name: memory(preset) for name, preset in MEMORIES.items()}


def stored(folder: Path) -> dict[str, Path]:
    """The store of the session below a folder, as the memory's only part."""
    return {"": existing(folder, SESSION)}


def bound(lm: LanguageModel, name: str, settings: dict[str, object] | None = None) -> Method:
    """The method of a preset on a model."""
    preset = load_preset(name, settings)
    return preset.method(lm, preset.settings)


def drawn(lm: LanguageModel) -> list[World]:
    """Validation worlds of the episodic suite."""
    overrides = {"n_facts": FACTS, "n_items": ITEMS}
    return list(worlds("episodic", "default", QUESTIONS, 1337, "val", lm.spec.context_limit, overrides))


def costs(lm: LanguageModel) -> pd.DataFrame:
    """A line a way: means over the questions, of times the median of ROUNDS rounds in turn. A way that cannot be run is left out."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = {name: method for name, method in methods(lm, Path(folder)).items() if runs(name, method)}
        rounds = [{name: method()[COLUMNS].fillna(0.0).mean() for name, method in chosen.items()} for _ in range(ROUNDS)]
    return pd.DataFrame({name: pd.DataFrame([round_ms[name] for round_ms in rounds]).median() for name in chosen}).T


def runs(name: str, method: Callable[[], pd.DataFrame]) -> bool:
    """Run it once, so that nothing is measured cold."""
    try:
        method()
    except LabError as error:
        print(f"{name} is left out: {error}")
        return False
    return True


def gate(lm: LanguageModel, kv: str) -> tuple[float, float]:
    """Seconds of teaching the worlds of QUESTIONS questions and asking these, without a gate and with one that lets everything through:
    what is asked is the same. `kv`: where keys and values are kept from the one to the other."""
    suite, drawn_worlds = get_suite("episodic"), drawn(lm)
    variants = [{"episodic.store.kv": kv} | more for more in ({}, PASSES)]
    timings: list[list[float]] = [[] for _ in variants]
    for _ in range(ROUNDS):
        for settings, times in zip(variants, timings, strict=True):
            with tempfile.TemporaryDirectory() as folder:
                deliveries.ON_DISK = f"{folder}/kv"
                begin = (
                    teach(bound(lm, "memory/hei_nw", settings), suite, drawn_worlds, drawn_worlds, Path(folder), SESSION)["ms"].sum() / 1e3
                )
                asked = time.perf_counter()
                test(bound(lm, "memory/hei_nw", settings), suite, drawn_worlds, "delayed", stored(Path(folder)))
                times.append(begin + time.perf_counter() - asked)
    without, gated = map(median, timings)
    return without, gated


def setting(lm: LanguageModel, calibrated: Sequence[World]) -> float:
    """Seconds of setting a gate."""
    begin = time.perf_counter()
    bound(lm, "memory/hei_nw_gated").calibrate([Observation.of(fact) for fact in world.facts] for world in calibrated)
    return time.perf_counter() - begin


def main(models: Sequence[str]) -> None:
    """Print a table a model."""
    torch.set_num_threads(1)
    for model in models:
        lm = load(load_spec(model), threads=1)
        table = costs(lm)
        table["ms"] = table["retrieval_ms"] + table["latency_ms"]
        print(f"\n{model}: {QUESTIONS} questions, worlds of {FACTS} facts, one fact shown, one thread")
        print("| way | ms to choose | ms to answer | ms in all | of rag_bm25 | with traces met first | tokens | tokens once | score |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for name, row in table.iterrows():
            total, ratio = row["ms"] + row["encode_ms"], row["ms"] / table.loc["rag_bm25", "ms"]
            cells = [f"{row['retrieval_ms']:.2f}", f"{row['latency_ms']:.2f}", f"{row['ms']:.2f}", f"{ratio:.2f}", f"{total:.2f}"]
            print(f"| {name} | {' | '.join(cells)} | {row['computed_tokens']:.0f} | {row['once_tokens']:.0f} | {row['score']:.2f} |")
        for kv in ("memory", "disk"):
            without, gated = gate(lm, kv)
            print(
                f"gate, keys and values kept in {kv}: {QUESTIONS} questions and the {FACTS * QUESTIONS // ITEMS} facts told for them take "
                f"{gated:.2f} s with it, {without:.2f} s without, {gated / without:.3f} of the time"
            )
        print(f"setting a gate, once a suite and size: {setting(lm, drawn(lm)):.2f} s")


if __name__ == "__main__":
    main(sys.argv[1:] or ["hippo-tiny"])

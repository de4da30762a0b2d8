"""TEST DATA ONLY: small invented runs in the layout of real records, so that reports can be tested without a model.

Nothing here was measured. The probabilities below are made up to look like an ordinary run.
"""

import json
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pandas as pd

from hippo_core.evaluation.table import ITEMS
from hippo_core.methods.episodic import HeiNW
from hippo_core.protocols.questions.table import REPLAY, TEACH
from hippo_core.results.records import Table, begin_record, finish_record, seal
from hippo_core.results.scores import RANKING_COLUMNS

TABLES = {"teach": TEACH, "replay": REPLAY}
SUITES = ("episodic", "episodic_multi", "episodic_cross", "episodic_capacity", "semantic", "spatial", "babi")
PRESETS = (
    *(f"baselines/{name}" for name in ("core", "span_short", "longctx", "rag_bm25", "rag_dense", "rag_hybrid")),
    *("controls/random_facts", "controls/oracle"),
)
RUNGS = ("exact", "partial", "paraphrase", "noisy")
EASE = {"exact": 0.0, "partial": 0.04, "paraphrase": 0.12, "noisy": 0.3}
SKILL = {
    **{"baselines/core": 0.62, "baselines/span_short": 0.93, "baselines/longctx": 0.9, "baselines/rag_bm25": 0.95},
    **{"baselines/rag_dense": 0.85, "baselines/rag_hybrid": 0.96, "memory/hei_nw": 0.94},
    **{"controls/random_facts": 0.2, "controls/oracle": 0.98},
}
ENCODED = ("baselines/rag_dense", "baselines/rag_hybrid")
SUITE_SETTINGS = {"n_facts": 32, "n_items": 5, "window": 8}
WINDOWED = ("baselines/core", "baselines/span_short")
HAS_RUNGS = ("episodic", "episodic_multi", "episodic_cross", "episodic_capacity", "semantic")
WHERE = ("the pier", "the mill", "the library", "the old dock", "the market", "the chapel", "the quarry")
WHO = ("Nia", "Omar", "Lea", "Tariq", "Ines", "Bo")


def make_rows(suite: str, preset: str, regime: str, n: int = 50, seed: int = 1337, split: str = "test", per_world: int = 5) -> pd.DataFrame:
    """The item rows of one invented cell. Items and their difficulty depend on (suite, split, seed) only, so that cells pair."""
    random = Random(f"{preset}/{regime}")
    return pd.DataFrame([_row(suite, preset, regime, index, seed, split, per_world, random) for index in range(n)])


def _row(suite: str, preset: str, regime: str, index: int, seed: int, split: str, per_world: int, random: Random) -> dict:
    item = Random(f"{suite}/{split}/{seed}/{index}")
    world = f"{split}-{index // per_world:05d}"
    rung = RUNGS[index % 4] if suite in HAS_RUNGS else "exact"
    who, gold, wrong = item.choice(WHO), *item.sample(WHERE, 2)
    ranks = "rag" in preset
    window = preset in WINDOWED and regime == "immediate"
    skill = 0.12 if preset in WINDOWED and not window else SKILL[preset] - (EASE[rung] if ranks else EASE[rung] / 4)
    right = item.random() < 0.95 and random.random() < skill
    pred = gold if right else wrong if random.random() < 0.9 else "I cannot say."
    shown = 0 if preset in WINDOWED and not window else 8 if window or "longctx" in preset else 3
    context = [f"{item.choice(WHO)} met a friend at {item.choice(WHERE)} on Monday." for _ in range(shown)]
    question = f"Where did {who} go on Friday?"
    nothing = float("nan")
    rank = 1 if right else item.choice([2, 4, 7, 20])
    return {
        "idx": index,
        "item_id": f"{world}/q{index % per_world}",
        "world": world,
        "stage": "test",
        "kind": item.choice(["who", "where", "when"]),
        "rung": rung,
        "hops": 1,
        "distance": item.randrange(6),
        "slices": item.choice(["", "new_name", "new_name;new_template"]),
        "question": question,
        "prompt": "\n".join([*context, question]),
        "answer": gold,
        "pred": pred,
        "em_raw": float(right and random.random() < 0.97),
        "em_norm": float(right),
        "f1": 1.0 if right else 0.5 * ("the" in pred),
        "success": float(right) if suite == "spatial" else nothing,
        "suboptimality": 1.0 if suite == "spatial" and right else nothing,
        "score": float(right),
        "chance": 1 / 7,
        "pred_len": len(pred.split()),
        "gold_len": len(gold.split()),
        "overlong": float(len(pred.split()) > len(gold.split())),
        "format_violation": float("." in pred),
        "refusal": float("cannot" in pred),
        "abstained": 0.0,
        "refuted": float("nan"),
        "shown": ";".join(f"{world}/f{j}" for j in range(shown)),
        "n_shown": shown,
        "n_dropped": 0,
        **{name: float(rank <= int(name.rpartition("_")[2])) if ranks else nothing for name in RANKING_COLUMNS},
        "prompt_tokens": 24 + 11 * shown,
        "generated_tokens": len(pred.split()) + 1,
        "computed_tokens": 30.0 + 11 * shown,
        "kv_mb": 0.004 * (24 + 11 * shown),
        "latency_ms": 9.0 + shown + random.random(),
        "retrieval_ms": 0.4 if ranks else nothing,
        "flags": "",
    }


def add_record(
    run: Path,
    suite: str,
    preset: str,
    regime: str,
    n: int = 50,
    seed: int = 1337,
    split: str = "test",
    overrides: tuple[str, ...] = (),
    rows: pd.DataFrame | None = None,
    failed: str = "",
    model: str = "hippo-tiny",
    profile: str = "default",
    control: str = "none",
) -> Path:
    """Write one invented record (or, with `failed`, the remains of a failed cell) and return its folder."""
    tag = sum(map(ord, f"{suite}{preset}{regime}{n}{seed}{split}{overrides}{model}{profile}"))
    folder = run / preset / suite / f"{n}_{seed}" / f"{regime}-test-{tag:08x}"
    folder.mkdir(parents=True)
    parameters = {"run_id": run.name, "suite": suite, "preset": preset, "model": model, "regime": regime, "profile": profile, "n": n}
    parameters |= {"seed": seed, "split": split, "dry_run": False, "threads": 1, "batch_size": 32, "record_dir": ""}
    parameters |= {"overrides": list(overrides)}
    settings = dict(text.split("=") for text in overrides)
    encoder = settings.get("encoder", "own") if preset in ENCODED else None
    config = {"parameters": parameters, "preset": {"name": preset, "encoder": encoder, "control": control}}
    config |= {"suite": {"settings": SUITE_SETTINGS}}
    begin_record(folder, config, _meta(parameters, tag))
    (folder / "notebook.ipynb").write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    if failed:
        (folder / "error.txt").write_text(failed)
        return folder
    rows = make_rows(suite, preset, regime, n, seed, split) if rows is None else rows
    metrics = {"suite": suite, "n": n, "seed": seed, "preset": preset, "metrics": {suite: {"em": float(rows["score"].mean())}}}
    finish_record(folder, rows, metrics, {"seconds": 4.2, "started": "2026-01-01T00:00:00+00:00"})
    seal(folder)
    return folder


def add_memory(run: Path, suite: str = "episodic", regime: str = "delayed", n: int = 50, seed: int = 1337) -> Path:
    """An invented record of a memory's test, with the columns of its own, beside one of the cell that taught or replayed its store."""
    own = {"requests": 1.0, "candidates": 20.0, "k_used": 1.0, "trace_tokens": 14.0, "store_size": 32.0, "store_written": 1.0}
    own |= {"recall_ms": 0.4, "completion_ms": 2.5, "encode_ms": 1.0}
    recalled = '[["Nia met a <friend> at the mill.", 0.8125], ["Bo met a friend.", null]]'
    rows = make_rows(suite, "memory/hei_nw", regime, n, seed).assign(**own, recalled_texts=recalled)
    slept = regime == "after_sleep"
    if slept:
        rows = rows.assign(replayed=1.0, replay_cycles_missing=0.0)
    add_prepared(run, suite, "replay" if slept else "teach", n, seed)
    return add_record(run, suite, "memory/hei_nw", regime, n, seed, rows=rows)


def add_prepared(run: Path, suite: str, step: str, n: int = 50, seed: int = 1337) -> Path:
    """An invented record of a cell that taught or replayed."""
    random = Random(f"{suite}/{step}/{seed}")
    scores = [random.gauss(0, 1) for _ in range(64)]
    taught = {"fact_id": range(64), "world": [f"w{number // 4}" for number in range(64)], "S": scores, "ms": 0.2}
    taught |= {"asked": [float(score > 0.3) for score in scores]}
    taught |= {"action": ["insert" if score > 0 else "refuse" for score in scores]}
    replayed = {"cycle": 1, "trace_id": range(64), "recalled": [float(score > -1) for score in scores], "ms": 1.0}
    replayed |= {"salience_before": scores, "salience_after": [score + 0.1 for score in scores]}
    rows = pd.DataFrame(taught if step == "teach" else replayed)
    regime = {"teach": "delayed", "replay": "after_sleep"}[step]
    tag = sum(map(ord, f"{suite}{step}{n}{seed}"))
    folder = run / "memory/hei_nw" / suite / f"{n}_{seed}" / f"{regime}-{step}-{tag:08x}"
    parameters = {"run_id": run.name, "suite": suite, "preset": "memory/hei_nw", "model": "hippo-tiny", "regime": regime, "n": n}
    parameters |= {"profile": "default", "seed": seed, "split": "test", "dry_run": False, "overrides": [], "step": step}
    begin_record(folder, {"parameters": parameters}, {**_meta(parameters, tag, TABLES[step]), "phase": "03_memory", "experiment": "memory"})
    metrics = TABLES[step].metrics(opened(suite, n, seed), rows, 4.2)
    finish_record(folder, rows, metrics, {"seconds": 4.2, "started": "2026-01-01T00:00:00+00:00"}, TABLES[step].file)
    seal(folder)
    return folder


def opened(suite: str, n: int, seed: int) -> SimpleNamespace:
    """As much of an open cell as metrics are made from."""
    parameters = SimpleNamespace(suite=suite, n=n, seed=seed, preset="memory/hei_nw")
    resolved = SimpleNamespace(preset=SimpleNamespace(method=HeiNW))
    return SimpleNamespace(parameters=parameters, resolved=resolved, own_means=lambda rows: {})


def _meta(parameters: dict, tag: int, table: Table = ITEMS) -> dict:
    return {
        **{"git_sha": "0" * 40, "config_hash": f"{tag:064x}", "phase": "02_baseline", "parameters": parameters},
        **{name: parameters[name] for name in ("model", "profile", "regime")},
        **{"experiment": "answer", "step": table.step, "needs": {}, "stages": ["test"], "device": "cpu", "threads": 1},
        "table": {**table.described(), "text": [*table.text, "scores"]},
        "versions": {"python": "3.11.2", "torch": "2.13.0", "transformers": "5.0.0"},
        "checksums": {"data": f"{tag:064x}", "weights": "a" * 64, "lock": "b" * 64, "notebook": "c" * 64, "library": "d" * 64},
    }


def build_run(run: Path, suites: tuple[str, ...] = SUITES, presets: tuple[str, ...] = PRESETS, n: int = 50, seeds=(1337,)) -> Path:
    """An invented run with every suite and preset: core and span_short in both regimes, all others delayed."""
    for suite in suites:
        for preset in presets:
            windowed = preset in WINDOWED and suite != "episodic_cross"
            for regime in ("immediate", "delayed") if windowed else ("delayed",):
                for seed in seeds:
                    add_record(run, suite, preset, regime, n, seed)
    return run

"""Fit the weights by which a memory's channels and completions are added up, on validation worlds of the episodic suites.

Nothing of a test world is seen, and no word, name or form of question that is held out of training. The same worlds give the table that
says how often each way of completing finds the right trace, by which the defaults of params/presets/memory are chosen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.models.language_model import LanguageModel
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import lines_of, prefix_of
from hippo_core.retrieval import trace_index
from hippo_core.retrieval.channels import Rows
from hippo_core.retrieval.fusion import Channel, Example, Features, fit, fused, name_of
from hippo_core.retrieval.recall import Completion, RecallConfig, Recaller
from hippo_core.retrieval.text_encoder import TextEncoder, payloads
from hippo_core.retrieval.trace_index import TraceIndex
from hippo_core.store.trace import Trace
from hippo_core.suites.draw import cut, drawn_worlds, suite_settings
from hippo_core.suites.types import World

SEED = 2025  # of validation worlds that no grid of the lab asks
TRAINED_WORDS: Mapping[str, Any] = {"held_out": False, "new_names": 0.0}
DEFAULT: tuple[Channel, ...] = ("words", "grams", "key")
FITTED: tuple[Channel, ...] = (*DEFAULT, "minilm")  # where MiniLM is on the disk; pieces have weights of their own
COMPLETIONS: tuple[Completion, ...] = ("off", "hopfield", "predictive")
# suite, settings, questions: where a memory is asked
WORLDS: tuple[tuple[str, Mapping[str, Any], int], ...] = (
    ("episodic", {}, 200),
    ("episodic", {"n_facts": 128, "n_items": 25}, 200),
    ("episodic", {"n_facts": 1000, "n_items": 25}, 100),
    ("episodic_multi", {}, 120),
    ("episodic_multi", {"n_facts": 128, "n_items": 10}, 60),
    ("episodic_cross", {}, 120),
)


@dataclass(frozen=True)
class CalibrationQuery:
    """A question of a validation world, its code in each channel, its candidates, what the channels say of them, and the gold fact."""

    suite: str
    rung: str
    text: str
    code: trace_index.Cue
    rows: Rows
    features: Features
    gold: str


@dataclass(frozen=True)
class RankedExample:
    """A cue's candidates after a completion; `right` is the place of the right one, None where it is not among them."""

    features: Features
    right: int | None


def fit_weights(
    lm: LanguageModel,
    encoder: TextEncoder,
    config: RecallConfig,
    channels: Sequence[Channel],
    say: Callable[[str], None] = print,
    completions: Sequence[Completion] = COMPLETIONS,
) -> tuple[dict[str, dict[str, dict[str, float]]], pd.DataFrame]:
    """The weights by channels and completion; and for the usual channels, and for all of them, how often the right trace comes first,
    among three and among ten, by suite, size and rung.

    The weights of `config` are not read. Each choice of channels has weights of its own; the candidates that completions judge are the best
    of all channels.
    """
    worlds_of_cues = [(index, list(cues_of(suite, world, index, config))) for suite, world, index in indexes(lm, encoder, channels)]
    judged = {"off": [RankedExample(cue.features, right_of(index, cue.rows, cue)) for index, cues in worlds_of_cues for cue in cues]}
    first, passage_kv = fit(examples(judged["off"])), PassageKV(lm, prefix_of(lm, "short"))
    say(f"channels: {first}")
    for completion in completions[1:]:
        judged[completion] = [
            ranked for index, cues in worlds_of_cues for ranked in completed(index, cues, completion, config, first, passage_kv)
        ]
        say(f"{completion}: {fit(examples(judged[completion]))}")
    weights = {name_of(some): weights_of(judged, some) for count in range(1, len(channels) + 1) for some in combinations(channels, count)}
    sized_cues = [(cue, len(index.traces)) for index, cues in worlds_of_cues for cue in cues]
    rows = [
        {
            "channels": name,
            "completion": completion,
            "suite": cue.suite,
            "n_facts": size,
            "rung": cue.rung,
            **hits(made, weights[name][completion]),
        }
        for name in dict.fromkeys((name_of(DEFAULT), name_of(channels)))
        for completion in completions
        for (cue, size), made in zip(sized_cues, judged[completion], strict=True)
    ]
    keys = ["channels", "completion", "suite", "n_facts", "rung"]
    return weights, pd.DataFrame(rows).groupby(keys, sort=False).agg(["mean", "size"]).pipe(flat)


def weights_of(judged: Mapping[str, Sequence[RankedExample]], channels: Sequence[str]) -> dict[str, dict[str, float]]:
    """The weights of a choice of channels, by completion; Hopfield completion needs the key."""
    own = {
        *channels,
        *(f"{channel}_covered" for channel in channels),
        *(("superseded", "hopfield") if "key" in channels else ()),
        "predictive",
    }
    return {
        completion: fit(examples([restricted(ranked, own) for ranked in judged[completion]]))
        for completion in judged
        if completion != "hopfield" or "key" in channels
    }


def restricted(judged: RankedExample, names: Set[str]) -> RankedExample:
    """The same with these features only."""
    return RankedExample({name: values for name, values in judged.features.items() if name in names}, judged.right)


def indexes(lm: LanguageModel, encoder: TextEncoder, channels: Sequence[Channel]) -> Iterator[tuple[str, World, TraceIndex]]:
    """The worlds that weights are fitted on, as if all of them had been taught."""
    for suite, overrides, questions in WORLDS:
        settings = suite_settings(suite, "default", lm.spec.context_limit, {**overrides, **TRAINED_WORDS})
        for world in cut(drawn_worlds(suite, "default", questions, SEED, "val", settings), questions):
            texts = [fact.text for fact in world.facts]
            encoded = zip(world.facts, payloads(encoder, texts, lines_of(lm, texts, "short")), strict=True)
            traces = [Trace(world.id, fact.id, fact.text, time=fact.time, id=fact.time + 1, payload=payload) for fact, payload in encoded]
            yield suite, world, TraceIndex(traces, channels, encoder)


def cues_of(suite: str, world: World, index: TraceIndex, config: RecallConfig) -> Iterator[CalibrationQuery]:
    """The questions of a world that one fact answers."""
    for item in world.items:
        if len(item.gold_facts) == 1:
            code = index.cue(item.question)
            rows = index.candidates(code, config.candidates)
            yield CalibrationQuery(suite, item.rung, item.question, code, rows, index.features(code, rows), item.gold_facts[0])


def completed(
    index: TraceIndex,
    cues: Sequence[CalibrationQuery],
    completion: Completion,
    config: RecallConfig,
    weights: Mapping[str, float],
    passage_kv: PassageKV,
) -> Iterator[RankedExample]:
    """The cues of one world with their best candidates completed."""
    recaller = Recaller(index, replace(config, completion=completion), passage_kv if completion == "predictive" else None)
    for cue in cues:
        best = np.argsort(-fused(cue.features, weights), kind="stable")[: config.rerank_candidates]
        rows, features = cue.rows[best], {name: values[best] for name, values in cue.features.items()}
        completion_features, _ = recaller.rerank_features(cue.text, cue.code, rows)
        yield RankedExample(features | completion_features, right_of(index, rows, cue))
    passage_kv.forget()


def right_of(index: TraceIndex, rows: Rows, cue: CalibrationQuery) -> int | None:
    """The place of the gold trace among rows."""
    return next((position for position, row in enumerate(rows) if index.traces[row].source == cue.gold), None)


def examples(judged: Sequence[RankedExample]) -> list[Example]:
    """Those from which something can be learnt."""
    return [Example(example.features, example.right) for example in judged if example.right is not None]


def hits(judged: RankedExample, weights: Mapping[str, float]) -> dict[str, float]:
    """Whether the right trace is among the first 1, 3 and 10."""
    order = np.argsort(-fused(restricted(judged, weights.keys()).features, weights), kind="stable").tolist()
    rank = order.index(judged.right) if judged.right is not None else len(order)
    return {f"recall_{k}": float(rank < k and judged.right is not None) for k in (1, 3, 10)}


def flat(table: pd.DataFrame) -> pd.DataFrame:
    """The means with one count."""
    means = table.xs("mean", axis=1, level=1).round(4)
    return means.assign(n=table.xs("size", axis=1, level=1).iloc[:, 0]).reset_index()

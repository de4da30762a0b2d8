"""Fit how sure a memory's recall is that its best trace answers the cue, on validation worlds of many kinds.

Every question that one fact answers is asked once with all facts of its world and once without that one and its other versions, where
nothing that is found can be right; questions that nobody answers are asked as they are. Each kind counts the same, and in each those with
and those without an answer. What is reported of a kind comes from a function that was fitted on the other kinds. Nothing of a test world
is seen.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.files import require_checkout
from hippo_core.methods.episodic.components import Components
from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.models.artifacts import save_part
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.confidence import PART, Confidence, evidence, fit
from hippo_core.retrieval.fusion import Channel, name_of
from hippo_core.retrieval.minilm_head import owner
from hippo_core.retrieval.recall import RecallConfig, Recaller
from hippo_core.retrieval.text_encoder import TextEncoder, with_payloads
from hippo_core.retrieval.trace_index import TraceIndex
from hippo_core.store.trace import Trace
from hippo_core.suites import get_suite, settings_for
from hippo_core.suites.draw import CONTEXT_LIMIT, worlds
from hippo_core.suites.types import World
from hippo_core.suites.unanswerable import named_by
from hippo_core.text_files import why_missing
from recipes.memory_parts import provenance
from recipes.recall_weights import SEED

MINILM = "minilm"
# kind: suite, profile, settings, questions
KINDS: Mapping[str, tuple[str, str, Mapping[str, Any], int]] = {
    "episodic": ("episodic", "default", {}, 192),
    "episodic, 1,000 facts": ("episodic", "default", {"n_facts": 1000, "n_items": 100}, 200),
    "episodic_cross": ("episodic_cross", "default", {}, 192),
    "episodic_multi": ("episodic_multi", "default", {}, 192),
    "notes": ("notes", "default", {}, 192),
    "notes, one world": ("notes", "together", {}, 192),
    "squad": ("squad", "default", {}, 400),
    "squad, one world": ("squad", "pooled", {}, 400),
}


@dataclass(frozen=True)
class ConfidenceExample:
    """A cue: what spoke for its best trace, whether that answers it, and whether any could."""

    kind: str
    evidence: Mapping[str, float]
    right: bool
    answerable: bool


def judged(
    encoder: TextEncoder, channels: Sequence[Channel], context_limit: int, say: Callable[[str], None]
) -> Iterator[ConfidenceExample]:
    """The questions of all kinds, recalled by the sum of these channels; a suite whose files are not in the user's folder is skipped."""
    recency = HeiNWSettings().episodic.recall.recency
    config = RecallConfig("off", 20, 20, 1.0, 1, recency=recency)
    for kind, (suite, profile, overrides, n) in KINDS.items():
        if reason := why_missing(get_suite(suite).files(settings_for(suite))):
            say(f"{kind}: skipped, {reason}")
            continue
        for world in worlds(suite, profile, n, SEED, "val", context_limit, dict(overrides)):
            traces = [Trace(world.id, fact.id, fact.text, time=fact.time, id=number) for number, fact in enumerate(world.facts, start=1)]
            recaller = Recaller(TraceIndex(with_payloads(encoder, traces), channels, encoder), config)
            yield from _of_world(kind, world, recaller)
        say(kind)


def _of_world(kind: str, world: World, recaller: Recaller) -> Iterator[ConfidenceExample]:
    for item in world.items:
        gold = {*item.gold_facts, *item.retold}
        versions = {fact.id for fact in world.facts if named_by(item, fact)}
        for sources in (set(item.taught), set(item.taught) - gold - versions) if len(item.gold_facts) == 1 else (set(item.taught),):
            recall = recaller.recall(item.question, sources)
            if recall.traces and len(item.gold_facts) < 2:
                terms = evidence(recall.features or {}, recall.scores, len(sources))
                yield ConfidenceExample(kind, terms, recall.traces[0].source in gold, bool(gold & sources))


def fitted(of: Sequence[ConfidenceExample]) -> Confidence:
    """The function in which each kind counts the same, and in it cues that can be answered as much as others."""
    sizes = pd.DataFrame(of).groupby(["kind", "answerable"])["kind"].transform("size").to_numpy(float)
    return fit([example.evidence for example in of], np.array([example.right for example in of], float), 1 / sizes)


def table_of(of: Sequence[ConfidenceExample]) -> pd.DataFrame:
    """One row a kind: how often the best trace is right (`right`), how often a confidence of .5 or more says so (`sure`) where it is right
    and where it is not, and the mean squared error of the confidence (`brier`), of a function fitted on the other kinds."""
    rows = []
    for kind in dict.fromkeys(example.kind for example in of):
        function = fitted([example for example in of if example.kind != kind])
        own = [example for example in of if example.kind == kind]
        confidences, right = np.array([function.of(example.evidence) for example in own]), np.array([example.right for example in own])
        shares = {"sure_where_right": (confidences[right] >= 0.5).mean(), "sure_where_wrong": (confidences[~right] >= 0.5).mean()}
        rows.append({"kind": kind, "n": len(own), "right": right.mean(), **shares, "brier": ((confidences - right) ** 2).mean()})
    return pd.DataFrame(rows).round(4)


def fit_confidence(model: str, say: Callable[[str], None] = print) -> pd.DataFrame:
    """Fit and write `confidence.json`: for the memory with MiniLM (`model` minilm), or with a model's own key. Returns the table."""
    require_checkout("fitting")
    of_minilm = model == MINILM
    lm = load(load_spec("hippo-tiny" if of_minilm else model), threads=1)
    settings = HeiNWSettings(encoder="minilm" if of_minilm else "own")
    of = list(judged(Components(lm, settings).encoder, settings.channels, CONTEXT_LIMIT, say))
    table = table_of(of)
    made = {"fitted": {name_of(settings.channels): asdict(fitted(of))}, "seed": SEED, **provenance(f"make confidence MODEL={model}")}
    save_part(owner() if of_minilm else lm, PART, made | {"validation": table.to_dict("records")})
    return table


def main() -> None:
    """Fit for each model that is named: hippo-tiny (its own key) and minilm (the key over MiniLM's pieces, with its vectors) if none is."""
    for model in sys.argv[1:] or ("hippo-tiny", MINILM):
        print(f"data/weights/{model}/{PART}.json\n{fit_confidence(model).to_string(index=False)}", flush=True)


if __name__ == "__main__":
    main()

"""Recall: channels rank the traces for a cue, and completion, where it is on, looks at the best of them.

By default a trace's score is the sum over channels of how like the cue it is, each standardised among the world's traces; what was told
later in place of one of the best counts against it. With fitted weights (fusion.py) candidates are ranked by their weighted features.
Scores are rounded to six decimals before they are compared, and ties go to the lower id.
"""

import time
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from hippo_core.errors import LabError
from hippo_core.kernels.hopfield import hopfield
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import Decoding
from hippo_core.retrieval.channels import Rows, Scores, dense
from hippo_core.retrieval.confidence import LIKENESS, Confidence, evidence
from hippo_core.retrieval.fusion import Features, fused
from hippo_core.retrieval.question_likelihood import after_kv
from hippo_core.retrieval.ranking import standardised
from hippo_core.retrieval.text_encoder import Codes
from hippo_core.retrieval.trace_index import Cue, TraceIndex
from hippo_core.store.trace import Trace

Completion = Literal["predictive", "hopfield", "off"]
ALONE = 2.0  # what a key counts without a published encoder's vectors: it takes their place, too
COMPARED = 20  # of the best traces, with each other, for whether one was told later in place of another


@dataclass(frozen=True)
class RecallConfig:
    """The settings of a recall."""

    completion: Completion  # who judges the best traces
    candidates: int  # traces of each channel that fitted weights look at
    rerank_candidates: int  # how many of the best traces are ranked, and judged
    beta: float  # of Hopfield completion
    steps: int  # of Hopfield completion
    weights: Mapping[str, Mapping[str, float]] | None = None  # fitted ones by completion; None: the sum of standardised likenesses
    decoding: Decoding = "short"
    recency: float = 0.0  # how much it counts against a trace that one of the best was told later
    confidence: Confidence | None = None  # how sure the sum is of its best trace; None: nothing is said
    below: float = 1.0  # completion judges only where the sum is less sure than this; 1: always


@dataclass(frozen=True)
class Recall:
    """The result of a recall."""

    traces: tuple[Trace, ...] = ()  # best first
    scores: tuple[float, ...] = ()  # of each trace
    features: Features | None = None  # what the scores are made of [traces]
    recall_ms: float = 0.0  # without encode_ms, as completion_ms
    completion_ms: float = 0.0
    computed_tokens: float = 0.0  # run for the cue; one that passes a third of the blocks counts a third
    encode_ms: float = 0.0  # spent on keys and values of traces that had none yet
    once_tokens: float = 0.0  # the tokens of `encode_ms`; no part of `computed_tokens`
    confidence: float | None = None  # that the best trace answers the cue, 0 to 1; None where nothing is said

    @property
    def terms(self) -> dict[str, list[float]]:
        """The features that are added up, with their weights where there are any, to the scores."""
        return {name: values.tolist() for name, values in (self.features or {}).items() if not name.endswith(LIKENESS)}


class Recaller:
    """Recall from the traces of one world."""

    def __init__(self, index: TraceIndex, config: RecallConfig, passage_kv: PassageKV | None = None) -> None:
        if config.completion == "predictive" and passage_kv is None:
            raise LabError("predictive completion needs the traces' keys and values; give it a PassageKV")
        if config.below < 1 and config.confidence is None:
            raise LabError("completion in doubt alone needs a confidence; give one, or below=1")
        self.index, self.config, self.passage_kv = index, config, passage_kv

    def recall(self, text: str, sources: Set[str] | None = None, codes: Codes | None = None) -> Recall:
        """The best traces for a cue, ranked; none where the cue has nothing in common with any. `sources`: only traces of these statements
        may be recalled (None: all). `codes`: the cue's, where they were made before."""
        begin = time.perf_counter()
        if not self.index.traces:
            return Recall(recall_ms=(time.perf_counter() - begin) * 1e3)
        cue, allowed = self.index.cue(text, codes), [sources is None or trace.source in sources for trace in self.index.traces]
        mask = None if all(allowed) else torch.tensor(allowed)
        rows, features, scores = self._proposed(cue, mask)
        if not len(rows):
            return Recall(recall_ms=(time.perf_counter() - begin) * 1e3, confidence=0.0 if self._gives_confidence else None)
        confidence = self._confidence(features, scores, mask)
        proposed = time.perf_counter()
        once, tokens, completed = 0, 0.0, Features()
        encoded = proposed
        if self.config.below == 1 or (confidence or 0.0) < self.config.below:
            if self.passage_kv and self.config.completion == "predictive":
                once = self.passage_kv.get([self.index.traces[row].payload.token_ids for row in rows]).computed_tokens
            encoded = time.perf_counter()
            completed, tokens = self.rerank_features(text, cue, rows)
        if completed:
            rows, features, scores = self._completed(rows, features, scores, completed)
        traces = tuple(self.index.traces[row] for row in rows)
        times = [proposed - begin, time.perf_counter() - encoded]
        recall_ms, completion_ms = (seconds * 1e3 for seconds in times)
        tokens += self.index.cue_tokens(text)
        encode_ms = (encoded - proposed) * 1e3
        given = confidence if self._gives_confidence else None
        return Recall(traces, tuple(scores.tolist()), features, recall_ms, completion_ms, tokens, encode_ms, once, given)

    @property
    def _gives_confidence(self) -> bool:
        """Whether the sum's confidence is valid for what is recalled."""
        return self.config.confidence is not None and self.config.completion == "off"

    def _confidence(self, features: Features, scores: Scores, mask: torch.Tensor | None) -> float | None:
        if self.config.confidence is None:
            return None
        size = len(self.index.traces) if mask is None else int(mask.sum())
        return self.config.confidence.of(evidence(features, scores.tolist(), size))

    def _proposed(self, cue: Cue, mask: torch.Tensor | None) -> tuple[Rows, Features, Scores]:
        """The best traces before completion, best first, their features and their scores."""
        most = self.config.rerank_candidates
        if self.config.weights is None:
            rows, features, scores = self._summed(cue, mask)
        else:
            rows = self.index.candidates(cue, self.config.candidates, mask)
            features = self.index.features(cue, rows) if len(rows) else {}
            rows, features, scores = ordered(rows, features, fused(features, self.config.weights["off"]) if len(rows) else np.zeros(0))
        return rows[:most], {name: values[:most] for name, values in features.items()}, scores[:most]

    def _summed(self, cue: Cue, mask: torch.Tensor | None) -> tuple[Rows, Features, Scores]:
        """The best traces by the sum of their standardised likenesses, of those of which any channel says something."""
        allowed = np.ones(len(self.index.traces), bool) if mask is None else mask.numpy()
        likeness = self.index.likeness(cue)
        matched = allowed & np.any([values > 0 for values in likeness.values()], axis=0)
        features = {name: standardised(values, allowed) for name, values in likeness.items()}
        if "key" in features and cue.vector is None:
            features["key"] *= ALONE
        total = np.sum([*features.values()], axis=0)
        rows = best_rows(total, matched, max(self.config.rerank_candidates, COMPARED))
        rows, _, scores = ordered(rows, {}, total[rows])
        features = {name: values[rows] for name, values in features.items()}
        features |= {name + LIKENESS: values[rows] for name, values in likeness.items()}
        if self.config.recency and "key" in cue.codes and len(rows):
            features["superseded"] = np.zeros(len(rows))
            features["superseded"][:COMPARED] = -self.config.recency * self.index.superseded(rows[:COMPARED])
            scores = scores + features["superseded"]
        return ordered(rows, features, scores)

    def _completed(self, rows: Rows, features: Features, scores: Scores, completed: Features) -> tuple[Rows, Features, Scores]:
        """The same, reranked by completion."""
        if self.config.weights is not None:
            features = features | completed
            return ordered(rows, features, fused(features, self.config.weights[self.config.completion]))
        judged = {name: standardised(values) for name, values in completed.items()}
        return ordered(rows, features | judged, scores + np.sum([*judged.values()], axis=0))

    def rerank_features(self, text: str, cue: Cue, rows: Rows) -> tuple[Features, float]:
        """Completion's features of these rows, and how many tokens it ran; no features where it is off."""
        if self.config.completion == "predictive" and self.passage_kv:
            logs, tokens = after_kv(self.passage_kv, [self.index.traces[row].payload.token_ids for row in rows], text, self.config.decoding)
            return {"predictive": np.array(logs)}, tokens
        if self.config.completion == "hopfield":
            patterns = self.index.patterns
            drawn = hopfield(patterns, dense(cue.codes["key"]), self.config.beta, self.config.steps)
            return {"hopfield": (patterns[torch.from_numpy(rows)] @ drawn[0]).numpy().astype(np.float64)}, 0
        return {}, 0


def best_rows(scores: Scores, allowed: np.ndarray, count: int) -> Rows:
    """The `count` rows of the highest scores among those allowed, in no order; as many as are as high as the last of them."""
    rows = np.flatnonzero(allowed)
    if len(rows) <= count:
        return rows
    last = np.partition(scores[rows], -count)[-count]
    return rows[np.round(scores[rows], 6) >= np.round(last, 6)]


def ordered(rows: Rows, features: Features, scores: Scores) -> tuple[Rows, Features, Scores]:
    """Rows with their features by their scores [C], rounded, the highest first; of equals the lowest row."""
    scores = np.round(scores, 6)
    order = np.lexsort((rows, -scores))
    return rows[order], {name: values[order] for name, values in features.items()}, scores[order]

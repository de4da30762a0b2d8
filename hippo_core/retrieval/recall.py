"""Recall: the channels propose candidates for a cue, completion looks at the best of them, and fitted weights rank them.

Scores are rounded to six digits before they are compared, and ties go to the lower id, so that a ranking does not depend on rounding.
"""

import time
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from hippo_core.files import LabError
from hippo_core.kernels.hopfield import hopfield
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import Decoding
from hippo_core.retrieval.fusion import Features, fused
from hippo_core.retrieval.question_likelihood import after_kv
from hippo_core.retrieval.sparse_matrix import SparseMatrix
from hippo_core.retrieval.trace_index import TraceIndex, dense
from hippo_core.store.trace import Trace

Completion = Literal["predictive", "hopfield", "off"]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class RecallConfig:
    """The settings of a recall: `candidates` of each channel; `rerank_candidates`, the best of them that completion looks at; `beta` and
    `steps` of Hopfield completion; the fusion's `weights` by completion, of which "off" also chooses who is judged."""

    completion: Completion
    candidates: int
    rerank_candidates: int
    beta: float
    steps: int
    weights: Mapping[str, Mapping[str, float]]
    decoding: Decoding = "short"


@dataclass(frozen=True)
class Recall:
    """What was recalled for a cue.

    Args:
        traces, scores, features: the ranked traces, best first, with the score of each and the features [N] that it was made of.
        recall_ms, completion_ms: milliseconds of the two stages.
        computed_tokens: tokens run for the cue; a token that goes through the first third of the blocks counts a third.
        encode_ms: milliseconds in which keys and values were made of traces that had none yet; no part of the other two times.
    """

    traces: tuple[Trace, ...] = ()
    scores: tuple[float, ...] = ()
    features: Features | None = None
    recall_ms: float = 0.0
    completion_ms: float = 0.0
    computed_tokens: float = 0.0
    encode_ms: float = 0.0


class Recaller:
    """Recall from the traces of one world."""

    def __init__(self, index: TraceIndex, config: RecallConfig, passage_kv: PassageKV | None = None) -> None:
        if config.completion == "predictive" and passage_kv is None:
            raise LabError("predictive completion needs the traces' keys and values; give it a PassageKV")
        self.index, self.config, self.passage_kv = index, config, passage_kv

    def recall(self, text: str, sources: Set[str] | None = None, key: SparseMatrix | None = None) -> Recall:
        """The ranked candidates for a cue; none where there are no traces, or the cue has nothing in common with any.

        Args:
            sources: only traces of these statements may be recalled; None: all.
            key: the cue's key, where it was made before.
        """
        begin = time.perf_counter()
        cue = self.index.cue(text, key) if self.index.traces else {}
        rows = self.index.candidates(cue, self.config.candidates, self._mask(sources))
        if not len(rows):
            return Recall(recall_ms=(time.perf_counter() - begin) * 1e3)
        rows, features, scores = self._ordered(rows, self.channel_features(cue, rows), "off")
        rows, features = (
            rows[: self.config.rerank_candidates],
            {name: values[: self.config.rerank_candidates] for name, values in features.items()},
        )
        proposed = time.perf_counter()
        if self.passage_kv and self.config.completion == "predictive":
            self.passage_kv.get([self.index.traces[row].payload.token_ids for row in rows])
        encoded = time.perf_counter()
        completed, tokens = self.rerank_features(text, cue, rows)
        if completed:
            rows, features, scores = self._ordered(rows, features | completed, self.config.completion)
        traces = tuple(self.index.traces[row] for row in rows)
        times = [proposed - begin, time.perf_counter() - encoded]
        recall_ms, completion_ms = (seconds * 1e3 for seconds in times)
        tokens += self.index.cue_tokens(text)
        return Recall(traces, tuple(scores.tolist()), features, recall_ms, completion_ms, tokens, (encoded - proposed) * 1e3)

    def _mask(self, sources: Set[str] | None) -> torch.Tensor | None:
        allowed = None if sources is None else [trace.source in sources for trace in self.index.traces]
        return None if allowed is None or all(allowed) else torch.tensor(allowed)

    def channel_features(self, cue: Mapping[str, SparseMatrix], rows: Rows) -> Features:
        """The channels' features of these rows: the cosine with the cue, the share of the cue that is covered, and `superseded`, how
        much a row looks as if one of them that was told later had replaced it."""
        features = {name: self.index.rows[name].cosines(rows, code) for name, code in cue.items()}
        features |= {f"{name}_covered": self.index.rows[name].covered(rows, code) for name, code in cue.items()}
        return features | ({"superseded": self.index.superseded(rows)} if "key" in cue else {})

    def rerank_features(self, text: str, cue: Mapping[str, SparseMatrix], rows: Rows) -> tuple[Features, float]:
        """Completion's features of these rows, and how many tokens it ran; no features where it is off."""
        if self.config.completion == "predictive" and self.passage_kv:
            logs, tokens = after_kv(self.passage_kv, [self.index.traces[row].payload.token_ids for row in rows], text, self.config.decoding)
            return {"predictive": np.array(logs)}, tokens
        if self.config.completion == "hopfield":
            patterns = self.index.patterns
            drawn = hopfield(patterns, dense(cue["key"]), self.config.beta, self.config.steps)
            return {"hopfield": (patterns[torch.from_numpy(rows)] @ drawn[0]).numpy().astype(np.float64)}, 0
        return {}, 0

    def _ordered(self, rows: Rows, features: Features, weights: str) -> tuple[Rows, Features, NDArray[np.float64]]:
        scores = np.round(fused(features, self.config.weights[weights]), 6)
        order = np.lexsort((rows, -scores))
        return rows[order], {name: values[order] for name, values in features.items()}, scores[order]

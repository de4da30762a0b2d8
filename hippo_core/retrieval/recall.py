"""Recall: channels propose candidates for a cue, completion scores the best of them, and fitted weights rank them.

Scores are rounded to six decimals before they are compared, and ties go to the lower id. So a ranking does not depend on rounding errors.
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
    """The settings of a recall.

    Args:
        completion: how candidates are completed.
        candidates: how many candidates each channel proposes.
        rerank_candidates: how many of the best candidates completion looks at.
        beta, steps: those of Hopfield completion.
        weights: the fusion's weights by completion. Those of "off" also choose the candidates that completion looks at.
        decoding: the kind of prompt that predictive completion uses.
    """

    completion: Completion
    candidates: int
    rerank_candidates: int
    beta: float
    steps: int
    weights: Mapping[str, Mapping[str, float]]
    decoding: Decoding = "short"


@dataclass(frozen=True)
class Recall:
    """The result of a recall.

    Args:
        traces: the ranked traces, best first.
        scores: the score of each trace.
        features: the features that the scores are made of, `(traces,)` each.
        recall_ms, completion_ms: milliseconds of the two stages.
        computed_tokens: tokens run for the cue. A token that passes only the first third of the blocks counts as a third.
        encode_ms: milliseconds spent on keys and values of traces that had none yet. The other two times do not contain it.
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
        """Rank the candidates for a cue.

        Args:
            text: the cue.
            sources: recall only traces of these statements; None allows all.
            key: the cue's key, if it was computed before.

        Returns:
            The ranked candidates. There are none if there are no traces, or if the cue has nothing in common with any.
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
        """The channels' features of these rows.

        Returns:
            For each channel, the cosine with the cue and the share of the cue that is covered. If there is a key channel, also
            `superseded`: how much a row looks as if a later one of these rows replaced it. Each is `(rows,)`.
        """
        features = {name: self.index.rows[name].cosines(rows, code) for name, code in cue.items()}
        features |= {f"{name}_covered": self.index.rows[name].covered(rows, code) for name, code in cue.items()}
        return features | ({"superseded": self.index.superseded(rows)} if "key" in cue else {})

    def rerank_features(self, text: str, cue: Mapping[str, SparseMatrix], rows: Rows) -> tuple[Features, float]:
        """Compute completion's features of these rows.

        Returns:
            The features, `(rows,)` each, and how many tokens were run. There are no features if completion is off.
        """
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

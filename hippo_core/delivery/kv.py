"""delivery: kv: the traces' keys and values lie in the cache before the question, each as if it alone stood after the beginning.

The order of several means nothing. Block-encoded context: Ma et al. 2024 (arXiv 2409.15355, section 2), where blocks keep their place in
the text; here all start at the same one.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hippo_core.delivery.types import Delivered, Once, Question
from hippo_core.errors import LabError
from hippo_core.models.ask import ask_blocks
from hippo_core.models.generate import Generation
from hippo_core.models.kv import StoredKV
from hippo_core.models.kv_storage import MB, KVStorage
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import Decoding, blocks_of, prefix_of, render, split, stops


class Row(NamedTuple):
    """What is run for a question: its tokens behind the KV of its traces, as they are kept."""

    tail: list[int]
    traces: tuple[StoredKV, ...]
    penalty: float | None


class KVDelivery:
    """Answers questions with their traces in the cache; `passage_kv` keeps the traces' KV of these blocks (None: all)."""

    def __init__(self, lm: LanguageModel, passage_kv: PassageKV, decoding: Decoding = "short", blocks: Sequence[int] | None = None) -> None:
        if passage_kv.blocks != (None if blocks is None else list(blocks)):
            raise LabError(f"expected the traces' KV of blocks {blocks or 'all'}, got those of {passage_kv.blocks or 'all'}")
        if passage_kv.prefix_ids != prefix_of(lm, decoding):
            behind = f"the beginning of {decoding} prompts: make it with prefix_of(lm, {decoding!r})"
            raise LabError(f"the traces' KV do not stand behind {behind}")
        self.lm, self.passage_kv = lm, passage_kv
        self.decoding: Decoding = decoding

    def ask(self, questions: Sequence[Question], max_new_tokens: int, batch_size: int = 32, *, masked: bool = False) -> list[Delivered]:
        """See `Delivery`. Questions whose traces take more than may be kept in memory are asked in several parts. LabError for a question
        or trace that is too long."""
        return [answer for part in self._parts(questions) for answer in self._ask(part, max_new_tokens, batch_size, masked)]

    def _ask(self, questions: Sequence[Question], max_new_tokens: int, batch_size: int, masked: bool) -> list[Delivered]:
        """The answers; what running the traces took is divided among the questions."""
        begin, share = time.perf_counter(), max(1, len(questions))
        pieces = [split(self.lm, question.blocks, question.text, self.decoding) for question in questions]
        for question, piece in zip(questions, pieces, strict=True):
            tokens = len(piece.prefix) + max(map(len, piece.blocks), default=0) + len(piece.tail) + max_new_tokens  # traces share positions
            if tokens > self.lm.spec.context_limit:
                raise LabError(
                    f"beginning, longest trace, question and answer take {tokens} tokens, the limit of {self.lm.spec.name} is "
                    f"{self.lm.spec.context_limit}: {question.text[:80]!r}; shorten the trace"
                )
        encoded = self.passage_kv.get([block for piece in pieces for block in piece.blocks])
        stored = iter(encoded.traces)
        rows = [
            Row(piece.tail, tuple(next(stored) for _ in piece.blocks), question.penalty)
            for piece, question in zip(pieces, questions, strict=True)
        ]
        ms = (time.perf_counter() - begin) * 1000 / share
        answers = self._run(rows, max_new_tokens, batch_size, masked)
        delivered = []
        for answer, question, piece in zip(answers, questions, pieces, strict=True):
            costs = {
                "computed_tokens": answer.computed_tokens + encoded.computed_tokens / share,
                "latency_ms": answer.latency_ms + ms,
                "prompt": render(self.lm, (), question.text, self.decoding),
                "trace_tokens": sum(map(len, piece.blocks)),
            }
            delivered.append(Delivered(**vars(answer) | costs))
        return delivered

    def _run(self, rows: Sequence[Row], max_new_tokens: int, batch_size: int, masked: bool) -> list[Generation]:
        stop, tails, nats = stops(self.lm, self.decoding), [row.tail for row in rows], [row.penalty for row in rows]
        traces = [row.traces for row in rows]
        return ask_blocks(self.lm, self.passage_kv.prefix, traces, tails, max_new_tokens, stop, batch_size, masked, nats)

    def make_ready(self, questions: Sequence[Question]) -> Once:
        """See `Delivery`. What does not fit into memory beside the first questions' traces counts to who asks for it."""
        begin, tokens = time.perf_counter(), 0
        if self.passage_kv.storage.store != "none" and (parts := self._parts(questions)):
            texts = list(dict.fromkeys(text for question in parts[0] for text in question.blocks))
            tokens = self.passage_kv.get(blocks_of(self.lm, texts, self.decoding)).computed_tokens if texts else 0
        return Once((time.perf_counter() - begin) * 1000, tokens)

    def _parts(self, questions: Sequence[Question]) -> list[list[Question]]:
        """The questions, in order and in as few parts as let the KV of a part's traces together fit into memory."""
        texts = list(dict.fromkeys(text for question in questions for text in question.blocks))
        sizes = [self.passage_kv.bytes_of([row]) for row in blocks_of(self.lm, texts, self.decoding)] if texts else []
        bytes_of, most = dict(zip(texts, sizes, strict=True)), self.passage_kv.storage.memory_mb * MB
        parts: list[list[Question]] = []
        blocks, size = set[str](), 0
        for question in questions:
            size += sum(bytes_of[text] for text in set(question.blocks) - blocks)
            if not parts or size > most:
                parts.append([])
                blocks, size = set(), sum(bytes_of[text] for text in set(question.blocks))
            parts[-1].append(question)
            blocks |= set(question.blocks)
        return parts

    def forget(self) -> None:
        self.passage_kv.forget()


def load(lm: LanguageModel, decoding: Decoding, storage: KVStorage, folder: Path | None) -> KVDelivery:
    """The delivery with a fresh cache of passages."""
    return KVDelivery(lm, PassageKV(lm, prefix_of(lm, decoding), storage, folder), decoding)

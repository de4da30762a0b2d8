"""What texts are recalled by: a sparse key, a published encoder's vector, or both, from one run of the model that reads them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hippo_core.kernels.kwta import kwta
from hippo_core.models import minilm
from hippo_core.retrieval.encoded import kept
from hippo_core.retrieval.key_encoder import KeyModel, MiniLMStates
from hippo_core.retrieval.lexicon import sentences
from hippo_core.retrieval.payload import Payload
from hippo_core.retrieval.pieces import PieceHead, PieceIndex, pieces_of
from hippo_core.retrieval.sparse_key import SparseKey, SparseMatrix
from hippo_core.retrieval.vectors import quantised
from hippo_core.retrieval.world_index import Cues
from hippo_core.store.trace import Trace

RUN = 1024  # texts whose states are held at a time


@dataclass(frozen=True)
class Codes:
    """What N texts are recalled by."""

    keys: SparseMatrix | None  # as rows; None without a key
    vectors: NDArray[np.int8]  # int8 [N, D]; D is 0 without an encoder
    pieces: tuple[PieceIndex, ...] = ()  # of each; none where they are not compared

    def __len__(self) -> int:
        return len(self.vectors)

    def row_at(self, row: int) -> "Codes":
        """Those of one text."""
        return Codes(self.keys and self.keys.row_at(row), self.vectors[row : row + 1], self.pieces[row : row + 1])

    def some(self, rows: NDArray[np.int64]) -> "Codes":
        """Those of some texts [R], in this order."""
        pieces = tuple(self.pieces[row] for row in rows) if self.pieces else ()
        return Codes(self.keys and self.keys.some(rows), self.vectors[rows], pieces)

    def sparse_keys(self) -> tuple[SparseKey, ...]:
        """The key of each text; none without a key."""
        keys = self.keys
        return () if keys is None else tuple(SparseKey.unpadded(*row, keys.dims) for row in zip(keys.indices, keys.values, strict=True))

    def tensors(self) -> dict[str, Tensor]:
        """All of it as tensors, which can be written down; of pieces their rows."""
        sizes = np.array([len(piece.table) for piece in self.pieces], dtype=np.int64)
        tables = {"pieces": np.concatenate([piece.table for piece in self.pieces]), "sizes": sizes} if self.pieces else {}
        keys = {} if self.keys is None else {"indices": torch.from_numpy(self.keys.indices), "values": torch.from_numpy(self.keys.values)}
        return {"vectors": torch.from_numpy(self.vectors), **keys} | {name: torch.from_numpy(array) for name, array in tables.items()}


@dataclass(frozen=True)
class KeyEncoder:
    """Keys: the fitted encoder, its first `expansion` units, and how many of them win (None: all that are active). Where it reads MiniLM's
    output, MiniLM's vector and pieces come with the key from one run."""

    model: KeyModel
    expansion: int
    winners: int | None
    name: str = ""  # what it is, with its weights; empty where its codes are not kept on disk
    pieces: PieceHead | None = None

    @property
    def dims(self) -> int:
        return self.expansion

    def codes(self, texts: Sequence[str]) -> Codes:
        active, vectors = torch.zeros(len(texts), self.expansion), np.zeros((len(texts), 0), np.int8)
        pieces: dict[int, PieceIndex] = {}
        if isinstance(self.model.source, MiniLMStates):
            for batch, states, means in minilm.read(texts, self.model.source.device):
                vectors = vectors if vectors.size else np.zeros((len(texts), means.shape[1]), np.int8)
                active[batch], vectors[batch] = self.model.active(states, self.expansion), quantised(means.numpy())
                if self.pieces:
                    words = [minilm.words_of_pieces(texts[row], self.model.source.device) for row in batch]
                    pieces |= {
                        row: pieces_of(self.pieces, state, own, vectors[row]) for row, state, own in zip(batch, states, words, strict=True)
                    }
        else:
            for start in range(0, len(texts), RUN):
                active[start : start + RUN] = self.model.activations(texts[start : start + RUN], self.expansion)
        return Codes(self.code(active), vectors, tuple(pieces[row] for row in range(len(pieces))))

    def keys(self, texts: Sequence[str]) -> list[SparseKey]:
        """The key of each text."""
        return self.keys_of(self.model.activations(texts, self.expansion))

    def keys_of(self, activations: Tensor) -> list[SparseKey]:
        """The keys of activations [N, expansion]."""
        return list(Codes(self.code(activations), np.zeros((len(activations), 0), np.int8)).sparse_keys())

    def code(self, activations: Tensor) -> SparseMatrix:
        """Activations [N, expansion] as rows of a code."""
        code = kwta(activations, self.winners or self.expansion)
        return SparseMatrix(code.indices.numpy(), code.values.numpy().astype(np.int16), self.expansion)

    def cost(self, text: str) -> float:
        return self.model.source.cost(text)


@dataclass(frozen=True)
class VectorEncoder:
    """MiniLM's vectors alone."""

    device: str = "cpu"
    dims: int = 1

    @property
    def name(self) -> str:
        return f"{minilm.identity()} as whole numbers"

    def codes(self, texts: Sequence[str]) -> Codes:
        return Codes(None, quantised(minilm.encode(texts, self.device).numpy()))

    def cost(self, text: str) -> float:
        return minilm.pieces(text, self.device)


@dataclass(frozen=True)
class KeysAndVectors:
    """Keys of one encoder and vectors of another, each with a run of its own."""

    keys: KeyEncoder
    vectors: VectorEncoder

    @property
    def name(self) -> str:
        return f"{self.keys.name} {self.vectors.name}" if self.keys.name else ""

    @property
    def dims(self) -> int:
        return self.keys.dims

    def codes(self, texts: Sequence[str]) -> Codes:
        return Codes(self.keys.codes(texts).keys, self.vectors.codes(texts).vectors)

    def cost(self, text: str) -> float:
        return self.keys.cost(text) + self.vectors.cost(text)


TextEncoder = KeyEncoder | VectorEncoder | KeysAndVectors


def coded_cues(encoder: TextEncoder | None, texts: Sequence[str]) -> Cues[Codes | None]:
    """The codes of cues, those of `texts` encoded together; None of each without an encoder."""
    return Cues(lambda cues: each(encoder, cues) if encoder else [None] * len(cues), texts)


def each(encoder: TextEncoder, texts: Sequence[str]) -> list[Codes | None]:
    """The codes of each text, run together."""
    made = encoder.codes(texts)
    return [made.row_at(row) for row in range(len(texts))]


def cost(encoder: TextEncoder, texts: Sequence[str]) -> float:
    """Tokens that are run for the codes of the sentences of texts."""
    return math.fsum(encoder.cost(part) for text in texts for part in sentences(text))


def joined(parts: Sequence[Sequence[str]]) -> tuple[list[str], NDArray[np.int64]]:
    """The parts [S] of several texts one after another, and where each text's begin [N]."""
    counts = np.array([len(part) for part in parts], dtype=np.int64)
    return [text for part in parts for text in part], np.cumsum(counts) - counts


def payloads(encoder: TextEncoder, texts: Sequence[str], lines: Sequence[Sequence[int]]) -> list[Payload]:
    """The payload of each text: its tokens as a line, and the codes of its sentences. Each sentence is run once, all together, or its codes
    come from disk."""
    if not texts:
        return []
    parts, starts = joined([sentences(text) for text in texts])
    each_once = {part: row for row, part in enumerate(dict.fromkeys(parts))}
    made = kept(encoder.name, list(each_once), lambda: encoder.codes(list(each_once)).tensors())
    keys = SparseMatrix(made["indices"].numpy(), made["values"].numpy(), encoder.dims) if "indices" in made else None
    rows = np.array([each_once[part] for part in parts], dtype=np.int64)
    codes = Codes(keys, made["vectors"].numpy()).some(rows)
    each_piece = made["pieces"].split(made["sizes"].tolist()) if "pieces" in made else ()
    tables = [each_piece[row].numpy() for row in rows] if each_piece else []
    of_each, ends = codes.sparse_keys(), [*starts[1:].tolist(), len(codes)]
    spans: Iterator[tuple[int, int]] = zip(starts.tolist(), ends, strict=True)
    return [Payload(tuple(line), of_each[a:b], codes.vectors[a:b], tuple(tables[a:b])) for line, (a, b) in zip(lines, spans, strict=True)]


def with_payloads(encoder: TextEncoder, traces: Sequence[Trace]) -> list[Trace]:
    """Traces with the codes of their sentences and without tokens."""
    made = payloads(encoder, [trace.text for trace in traces], [()] * len(traces))
    return [replace(trace, payload=payload) for trace, payload in zip(traces, made, strict=True)]

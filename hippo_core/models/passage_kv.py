"""Traces' keys and values, run once each and kept: nowhere, in this process, or on disk."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch.nn.functional import cross_entropy

from hippo_core.errors import LabError
from hippo_core.models.bounded_folder import BoundedFolder
from hippo_core.models.int8_kv import Int8KV
from hippo_core.models.kv import KV, StoredKV, encode, encode_blocks, inputs
from hippo_core.models.kv_storage import MB, KVShape, KVStorage, Precision
from hippo_core.models.language_model import LanguageModel, by_length

DEFAULT = KVStorage()


@dataclass(frozen=True)
class KVBatch:
    """KV of the traces asked for, in order and as they are kept (see `restored`), and how many tokens had to be run for them."""

    traces: tuple[StoredKV, ...]
    computed_tokens: int


class LRUCache:
    """KV by row of at most `limit` bytes in all, `nbytes` now; the least recently used goes first."""

    def __init__(self, limit: int) -> None:
        self.limit, self.nbytes = limit, 0
        self._values: dict[tuple[int, ...], StoredKV] = {}  # in order of use

    def get(self, row: tuple[int, ...]) -> StoredKV | None:
        """The KV of a row, marked as used; None if it is not stored."""
        if (kv := self._values.pop(row, None)) is not None:
            self._values[row] = kv
        return kv

    def put(self, row: tuple[int, ...], kv: StoredKV) -> None:
        """Store a row's KV; others go until all fit."""
        if (old := self._values.pop(row, None)) is not None:
            self.nbytes -= old.nbytes
        self._values[row] = kv
        self.nbytes += kv.nbytes
        while self.nbytes > self.limit:
            self.nbytes -= self._values.pop(next(iter(self._values))).nbytes

    def clear(self) -> None:
        """Remove all."""
        self._values.clear()
        self.nbytes = 0


class PassageKV:
    """The KV of traces behind one beginning of a prompt, by their token ids; `prefix` is that beginning's own, of all blocks.

    `storage` says where they are kept and how precisely: in memory until `forget`, or until others need the room; on disk in one file a
    trace in `folder`, named by the weights, the beginning and the trace. `blocks`: only these blocks' KV (None: all).
    """

    def __init__(
        self,
        lm: LanguageModel,
        prefix: Sequence[int],
        storage: KVStorage = DEFAULT,
        folder: Path | None = None,
        blocks: Sequence[int] | None = None,
        batch_size: int = 32,
    ) -> None:
        if (storage.store == "disk") != (folder is not None):
            raise LabError(f"store_kv={storage.store} {'needs' if storage.store == 'disk' else 'takes no'} folder, got {folder}")
        self.lm, self.prefix_ids, self.storage = lm, list(prefix), storage
        self.blocks, self.batch_size = None if blocks is None else list(blocks), batch_size
        self.prefix = encode_blocks(lm, self.prefix_ids, []).prefix
        layers = len(self.prefix) if blocks is None else len(blocks)
        self.shape = KVShape(layers, self.prefix.shape[2], self.prefix.shape[4], self.prefix.itemsize)
        self._cache = LRUCache(storage.memory_mb * MB)
        self._disk = BoundedFolder(folder, storage.disk_mb * MB) if folder else None

    @property
    def mb(self) -> float:
        """MiB that the traces kept in memory take."""
        return self._cache.nbytes / MB

    def forget(self) -> None:
        """Drop what is kept in memory, as at the end of a world."""
        self._cache.clear()

    def get(self, rows: Sequence[Sequence[int]]) -> KVBatch:
        """The KV of each row of token ids. LabError for a row that takes more than all kept in memory may."""
        wanted = {tuple(row): list(row) for row in rows}
        for row in wanted:
            self._require_fit(row)
        stored = {row: self._stored(row) for row in wanted}
        lacking = [row for row, kv in stored.items() if kv is None]
        made = dict(zip(lacking, self._run([wanted[row] for row in lacking]), strict=True)) if lacking else {}
        for row, kv in made.items():
            self._write(row, kv)
            if self.storage.store != "none":
                self._cache.put(row, kv)
        known = {row: kv for row, kv in (stored | made).items() if kv is not None}
        return KVBatch(tuple(known[tuple(row)] for row in rows), sum(map(len, lacking)))

    def bytes_of(self, rows: Iterable[Sequence[int]]) -> int:
        """What the KV of rows take, each row counted once."""
        return sum(self.shape.kv_bytes(len(row), self.storage.precision) for row in set(map(tuple, rows)))

    @torch.inference_mode()
    def read(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """The loss of each token of each row, in nats, behind the beginning. Keys and values stay in this process as those of `get` do;
        they go to the disk only once they are told to `keep`."""
        for row in rows:
            self._require_fit(row)
        before, first = self.prefix[:, :, :, :-1], self.prefix_ids[-1]
        nats: list[list[float]] = [[] for _ in rows]
        order = sorted((row for row, tokens in enumerate(rows) if tokens), key=lambda row: len(rows[row]))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            arguments = inputs(self.lm, [[first, *rows[row]] for row in batch], [(before,)] * len(batch))
            logits = self.lm.model(**arguments).logits
            for position, row in enumerate(batch):
                length = len(rows[row])
                targets = torch.tensor(rows[row], device=logits.device)
                nats[row] = cross_entropy(logits[position, -length - 1 : -1].float(), targets, reduction="none").tolist()
                if self.storage.store != "none":
                    kv = torch.stack(
                        [torch.stack((layer.keys[position], layer.values[position])) for layer in arguments["past_key_values"].layers]
                    )
                    self._cache.put(tuple(rows[row]), self._rounded(kv[:, :, :, -length:]))
        return nats

    def keep(self, rows: Iterable[Sequence[int]]) -> None:
        """Write what is still stored of these rows to disk, where that is the store."""
        for row in dict.fromkeys(map(tuple, rows)):
            if self._disk and (kv := self._cache.get(row)) is not None:
                self._write(row, kv)

    def _require_fit(self, row: Sequence[int]) -> None:
        if (size := self.bytes_of([row])) > self._cache.limit:
            raise LabError(
                f"keys and values of a passage of {len(row)} tokens take {size / MB:.1f} MiB, those kept in memory may take "
                f"{self.storage.memory_mb} MiB; raise kv_memory_mb"
            )

    def _run(self, rows: list[list[int]]) -> list[StoredKV]:
        """The KV of rows, a batch at a time: all blocks are run, unwanted ones are dropped."""
        made: dict[int, StoredKV] = {}
        for batch in by_length(rows, self.batch_size):
            blocks = encode(self.lm, [rows[row] for row in batch], self.prefix)
            made |= zip(batch, map(self._rounded, blocks), strict=True)
        return [made[row] for row in range(len(rows))]

    def _rounded(self, kv: KV) -> StoredKV:
        """The part of all blocks' KV that is kept, in its precision."""
        return rounded(kv if self.blocks is None else kv[self.blocks], self.storage.precision)

    def _stored(self, row: tuple[int, ...]) -> StoredKV | None:
        """What is there of a row, in this process or, where that is the store, on disk."""
        if (kv := self._cache.get(row)) is not None or self._disk is None:
            return kv
        path = self._path(self._disk, row)
        if (content := self._disk.read(path)) is None:
            return None
        kv = self._read(path, content, len(row))
        self._cache.put(row, kv)
        return kv

    def _write(self, row: tuple[int, ...], kv: StoredKV) -> None:
        """Put a row's KV on disk, where that is the store."""
        if self._disk:
            tensors = kv.tensors if isinstance(kv, Int8KV) else {"kv": kv}
            self._disk.write(self._path(self._disk, row), save({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}))

    def _path(self, disk: BoundedFolder, row: Sequence[int]) -> Path:
        name = hashlib.sha256(json.dumps([self.blocks, self.storage.precision, self.prefix_ids, list(row)]).encode()).hexdigest()
        return disk.folder / self._weights / name

    def _read(self, path: Path, content: bytes, tokens: int) -> StoredKV:
        try:
            tensors = {name: tensor.to(self.prefix.device) for name, tensor in load(content).items()}
            kv = Int8KV.of_tensors(tensors) if self.storage.precision == "int8" else tensors["kv"]
        except (SafetensorError, KeyError, ValueError) as error:
            raise LabError(f"{path} is damaged ({' '.join(str(error).split())[:100]}); delete it, and it will be made anew") from None
        expected = (self.shape.layers, 2, self.shape.kv_heads, tokens, self.shape.head_width)
        if kv.shape != expected:
            raise LabError(f"{path}: expected keys and values of shape {list(expected)}, got {list(kv.shape)}; delete it")
        return kv

    @cached_property
    def _weights(self) -> str:
        return checksum(self.lm)


def rounded(kv: KV, precision: Precision) -> StoredKV:
    """A KV in a precision, without memory of anything else."""
    return Int8KV.of(kv) if precision == "int8" else kv.to(torch.bfloat16 if precision == "bfloat16" else kv.dtype).contiguous()


def checksum(lm: LanguageModel) -> str:
    """The SHA-256 of all weights as they are in memory, names, types and shapes included: what was merged into them counts."""
    digest = hashlib.sha256()
    for name, tensor in sorted(lm.model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()

"""Traces' keys and values, run once each and kept: nowhere, in this process, or on disk."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch.nn.functional import cross_entropy

from hippo_core.files import LabError, unknown, write_bytes
from hippo_core.models.blocks import encode_blocks
from hippo_core.models.kv import KV, inputs
from hippo_core.models.language_model import LanguageModel

StoreKV = Literal["none", "memory", "disk"]
Precision = Literal["model", "bfloat16"]


@dataclass(frozen=True)
class KVBatch:
    """KV of the traces asked for, in order, and how many tokens had to be run for them."""

    traces: tuple[KV, ...]
    computed_tokens: int


class PassageKV:
    """The KV of traces behind one beginning of a prompt, by their token ids; `prefix` is that beginning's own, of all blocks.

    `store`: none (run whenever asked for), memory (run on first use, kept until `forget`), disk (the same, and kept in `folder` for other
    processes too, one file a trace, named by the weights, the beginning and the trace). `blocks`: only these blocks' KV, in that
    order; None: all. `precision`: what traces are rounded to, whatever the store, so that answers do not depend on it.
    """

    def __init__(
        self,
        lm: LanguageModel,
        prefix: Sequence[int],
        store: StoreKV = "memory",
        folder: Path | None = None,
        blocks: Sequence[int] | None = None,
        precision: Precision = "bfloat16",
        batch_size: int = 32,
    ) -> None:
        if store not in get_args(StoreKV):
            raise unknown("store_kv", store, get_args(StoreKV))
        if (store == "disk") != (folder is not None):
            raise LabError(f"store_kv={store} {'needs' if store == 'disk' else 'takes no'} folder, got {folder}")
        self.lm, self.prefix_ids, self.store, self.folder = lm, list(prefix), store, folder
        self.blocks, self.precision, self.batch_size = None if blocks is None else list(blocks), precision, batch_size
        self.prefix = encode_blocks(lm, self.prefix_ids, []).prefix
        self._cache: dict[tuple[int, ...], KV] = {}

    @property
    def mb(self) -> float:
        """MiB that the traces kept in memory take."""
        return sum(kv.nbytes for kv in self._cache.values()) / 2**20

    def forget(self) -> None:
        """Let go of what is kept in memory, as at the end of a world."""
        self._cache.clear()

    def get(self, rows: Sequence[Sequence[int]]) -> KVBatch:
        """The KV of each row of token ids."""
        wanted = {tuple(row): list(row) for row in rows}
        known = self._known(wanted)
        lacking = [row for row in wanted if row not in known]
        made = dict(zip(lacking, self._run([wanted[row] for row in lacking]), strict=True)) if lacking else {}
        if self.store != "none":
            self._cache |= known | made
        self.keep(lacking)
        known |= made
        return KVBatch(tuple(known[tuple(row)] for row in rows), sum(map(len, lacking)))

    @torch.inference_mode()
    def read(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """The loss of each token of each row, in nats, behind the beginning.

        It is the pass that leaves keys and values behind, too: they stay in this process until `forget`, and for others once they are told
        to `keep`, so that nothing of a text that nobody wants to remember is on the disk.
        """
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
                if self.store != "none":
                    kv = torch.stack(
                        [torch.stack((one.keys[position], one.values[position])) for one in arguments["past_key_values"].layers]
                    )
                    self._cache[tuple(rows[row])] = self._wanted(kv[:, :, :, -length:])
        return nats

    def keep(self, rows: Iterable[Sequence[int]]) -> None:
        """Put what is held of these rows on disk, where that is the store."""
        if self.store == "disk":
            for row in dict.fromkeys(map(tuple, rows)):
                write_bytes(self._path(row), save({"kv": self._cache[row].contiguous().cpu()}))

    def _run(self, rows: list[list[int]]) -> list[KV]:
        """All blocks are run; what is not wanted of them is let go."""
        return list(map(self._wanted, encode_blocks(self.lm, self.prefix_ids, rows, self.batch_size, self.prefix).blocks))

    def _wanted(self, kv: KV) -> KV:
        """Of the KV of all blocks what is kept, in the precision in which it is."""
        dtype = torch.bfloat16 if self.precision == "bfloat16" else self.prefix.dtype
        return (kv if self.blocks is None else kv[self.blocks]).to(dtype)

    def _known(self, rows: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], KV]:
        """What is there of these rows, in this process or, where that is the store, on disk."""
        cached = {row: self._cache[row] for row in rows if row in self._cache}
        if self.store == "disk":
            paths = {row: self._path(row) for row in rows if row not in cached}
            cached |= {row: self._read(path, len(row)) for row, path in paths.items() if path.exists()}
        return cached

    def _path(self, row: Sequence[int]) -> Path:
        assert self.folder is not None
        name = hashlib.sha256(json.dumps([self.blocks, self.precision, self.prefix_ids, list(row)]).encode()).hexdigest()
        return self.folder / self._weights / f"{name}.safetensors"

    def _read(self, path: Path, tokens: int) -> KV:
        try:
            kv = load(path.read_bytes())["kv"].to(self.prefix.device)
        except (SafetensorError, KeyError) as error:
            raise LabError(f"{path} is damaged ({' '.join(str(error).split())[:100]}); delete it, and it will be made anew") from None
        layers = len(self.prefix) if self.blocks is None else len(self.blocks)
        expected = (layers, 2, self.prefix.shape[2], tokens, self.prefix.shape[4])
        if kv.shape != expected:
            raise LabError(f"{path}: expected keys and values of shape {list(expected)}, got {list(kv.shape)}; delete it")
        return kv

    @cached_property
    def _weights(self) -> str:
        return checksum(self.lm)


def checksum(lm: LanguageModel) -> str:
    """The SHA-256 of all weights as they are in memory, names, types and shapes included: what was merged into them counts."""
    digest = hashlib.sha256()
    for name, tensor in sorted(lm.model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()

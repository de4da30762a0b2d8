"""Traces' keys and values, run once each and kept: nowhere, in this process, or on disk."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from hippo_core.files import LabError, unknown, write_bytes
from hippo_core.models.blocks import encode_blocks
from hippo_core.models.kv import KV
from hippo_core.models.language_model import LanguageModel

StoreKV = Literal["none", "memory", "disk"]
Precision = Literal["model", "bfloat16"]


@dataclass(frozen=True)
class Found:
    """KV of the traces asked for, in order, and how many tokens had to be run for them."""

    traces: tuple[KV, ...]
    computed_tokens: int


class TraceKV:
    """The KV of traces behind one beginning of a prompt, by their token ids; `prefix` is that beginning's own, of all blocks.

    `store`: none (run whenever asked for), memory (run on first use, kept until `forget`), disk (kept in `folder` for other
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
        self._kept: dict[tuple[int, ...], KV] = {}

    @property
    def mb(self) -> float:
        """MiB that the traces kept in memory take."""
        return sum(kv.nbytes for kv in self._kept.values()) / 2**20

    def forget(self) -> None:
        """Let go of what is kept in memory, as at the end of a world."""
        self._kept.clear()

    def get(self, rows: Sequence[Sequence[int]]) -> Found:
        """The KV of each row of token ids."""
        wanted = {tuple(row): list(row) for row in rows}
        known = self._known(wanted)
        lacking = [row for row in wanted if row not in known]
        made = dict(zip(lacking, self._run([wanted[row] for row in lacking]), strict=True)) if lacking else {}
        self._keep(made)
        known |= made
        return Found(tuple(known[tuple(row)] for row in rows), sum(map(len, lacking)))

    def _run(self, rows: list[list[int]]) -> list[KV]:
        """All blocks are run; what is not wanted of them is let go."""
        made = encode_blocks(self.lm, self.prefix_ids, rows, self.batch_size, self.prefix).blocks
        dtype = torch.bfloat16 if self.precision == "bfloat16" else self.prefix.dtype
        return [(kv if self.blocks is None else kv[self.blocks]).to(dtype) for kv in made]

    def _known(self, rows: Mapping[tuple[int, ...], list[int]]) -> dict[tuple[int, ...], KV]:
        if self.store == "disk":
            paths = {row: self._path(row) for row in rows}
            return {row: self._read(path, len(row)) for row, path in paths.items() if path.exists()}
        return {row: self._kept[row] for row in rows if row in self._kept}

    def _keep(self, made: Mapping[tuple[int, ...], KV]) -> None:
        if self.store == "memory":
            self._kept |= made
        elif self.store == "disk":
            for row, kv in made.items():
                write_bytes(self._path(row), save({"kv": kv.contiguous().cpu()}))

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

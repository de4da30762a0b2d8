"""The trace adapter: gated cross-attention over recalled traces. It runs beside the model's own blocks and reuses their weights.

After block b with output h, it computes

    y = h + o(g * attention(rotated q(norm(h)), K, V)),    g = tanh(gate)

norm, q and o are those of block b, K and V what it computed for the traces' tokens (models/passage_kv.py). q and o get low-rank updates
(LoRA: Hu et al. 2021, arXiv 2106.09685). With gate 0 the adapter changes nothing, like a gated layer of Flamingo (Alayrac et al. 2022,
arXiv 2204.14198, section 2.2). The base model is never changed: forward hooks are set for a batch and removed after it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from hippo_core.errors import LabError
from hippo_core.kernels.trace_attention import trace_attention
from hippo_core.models import artifacts
from hippo_core.models.kv import KV, StoredKV, restored, tokens_of
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.spec import validated


@dataclass
class Traces:
    """The traces that the rows of a batch attend to."""

    layers: list[tuple[Tensor, Tensor]]  # keys and values of each of the adapter's blocks [batch, kv_heads, trace_tokens, head_dim]
    mask: Tensor  # which trace tokens a row sees, bool [batch, trace_tokens]
    offset: Tensor  # how many positions later a row's question is rotated, int64 [batch]

    def keep(self, index: Tensor) -> None:
        """Keep only these rows."""
        self.layers = [(keys[index], values[index]) for keys, values in self.layers]
        self.mask, self.offset = self.mask[index], self.offset[index]


def lay_traces(rows: Sequence[Sequence[StoredKV]], like: KV, masked: bool = False) -> Traces:
    """Put the traces of each row side by side and pad them to one length.

    `rows` hold the KV of each row's traces, of the adapter's blocks only; `like`, any such KV, gives shape and dtype where rows have none.
    `masked` keeps the traces in place but hides them from every row.
    """
    lengths = [sum(map(tokens_of, row)) for row in rows]
    layers, _, heads, _, size = like.shape
    store = like.new_zeros(layers, 2, len(rows), heads, max(1, *lengths), size)
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if row:
            store[:, :, number, :, :length] = torch.cat([restored(kv, like.dtype) for kv in row], dim=3)
    longest = [max(map(tokens_of, row), default=0) for row in rows]
    seen = torch.tensor([0 if masked else length for length in lengths], device=like.device)
    mask = torch.arange(store.shape[4], device=like.device) < seen[:, None]
    offset = torch.tensor([0 if masked else tokens for tokens in longest], device=like.device)
    return Traces([(keys, values) for keys, values in store], mask, offset)


UNDERSTOOD = ("llama", "mistral", "phi3", "qwen2")  # model types whose attention does only q, rotation, softmax and o


class AdapterSettings(BaseModel):
    """The shape of a trace adapter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    blocks: Annotated[tuple[int, ...], Field(min_length=1)]  # that the adapter runs after, counted from 0
    rank: Annotated[int, Field(ge=1)] = 16  # of the low-rank updates
    gate: Literal["scalar", "head"] = "head"  # one gate per block, or per head


class TraceAdapter(nn.Module):
    """The trained part: gates and low-rank updates, neutral when new. `seed` draws the halves of the updates that do not start at 0.
    LabError where the model's block type is not supported, it does not have one of the blocks, or a block is named twice."""

    def __init__(self, lm: LanguageModel, settings: AdapterSettings, seed: int = 0) -> None:
        super().__init__()
        if (kind := lm.config.model_type) not in UNDERSTOOD:
            known = f"known: {', '.join(UNDERSTOOD)}"
            raise LabError(f"delivery=adapter does not know the blocks of model type {kind!r} ({known}); use delivery=kv or delivery=text")
        wrong = [block for block in settings.blocks if not 0 <= block < lm.config.num_hidden_layers]
        if wrong or len(set(settings.blocks)) != len(settings.blocks):
            legal = f"different ones from 0 to {lm.config.num_hidden_layers - 1}"
            raise LabError(f"blocks {list(settings.blocks)}: {lm.spec.name} has {legal}")
        self.settings, random = settings, torch.Generator().manual_seed(seed)
        self.parts = nn.ModuleList(TraceBlock(lm.config, settings, random) for _ in settings.blocks)
        self.to(lm.device)

    @contextmanager
    def attached(self, lm: LanguageModel, traces: Traces) -> Iterator[Traces]:
        """Let the model's forward passes attend to these traces; rows that leave the batch must also be dropped from `traces`."""
        decoder = lm.model.get_decoder()
        hooks = [
            decoder.layers[block].register_forward_hook(self._hook(decoder.rotary_emb, number, traces), with_kwargs=True)
            for number, block in enumerate(self.settings.blocks)
        ]
        try:
            yield traces
        finally:
            for hook in hooks:
                hook.remove()

    def _hook(self, rotary: nn.Module, number: int, traces: Traces) -> Any:
        part = self.parts[number]

        def attend_traces(block: Any, inputs: tuple[Tensor, ...], options: dict[str, Any], out: Tensor) -> Tensor:
            keys, values = traces.layers[number]
            turn = rotary(out, options["position_ids"] + traces.offset[:, None])
            return out + part(block, out, turn, keys, values, traces.mask)

        return attend_traces


class TraceBlock(nn.Module):
    """The gate and the low-rank updates of one block: q becomes q + up down, and o likewise. `down` starts random and `up` at 0."""

    def __init__(self, config: Any, settings: AdapterSettings, random: torch.Generator) -> None:
        super().__init__()
        heads, hidden, rank = config.num_attention_heads, config.hidden_size, settings.rank
        width = heads * (getattr(config, "head_dim", None) or hidden // heads)
        self.heads = heads
        self.gate = nn.Parameter(torch.zeros(heads if settings.gate == "head" else 1))
        self.q_down, self.q_up = nn.Parameter(torch.empty(rank, hidden)), nn.Parameter(torch.zeros(width, rank))
        self.o_down, self.o_up = nn.Parameter(torch.empty(rank, width)), nn.Parameter(torch.zeros(hidden, rank))
        for down in (self.q_down, self.o_down):
            nn.init.normal_(down, std=down.shape[1] ** -0.5, generator=random)

    def forward(self, block: Any, hidden: Tensor, turn: tuple[Tensor, Tensor], keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """The term that is added to `hidden`, the block's output [batch, tokens, hidden].

        `block` is the model's, whose norm, q and o are used; `turn` cosine and sine of the question's rotation [batch, tokens, rotary_dim];
        `keys` and `values` those of the traces [batch, kv_heads, trace_tokens, head_dim]; `mask` the trace tokens seen, bool [batch,
        trace_tokens].
        """
        attention, x = block.self_attn, block.input_layernorm(hidden)
        width = self.q_up.shape[0]
        q = _own_queries(attention, x, width) + _update(x, self.q_down, self.q_up)
        q = _rotate(q.unflatten(-1, (self.heads, -1)).transpose(1, 2), *turn)
        impl = "cpu" if q.device.type == "cpu" else "reference"  # the GPU version has no gradient
        with torch.autocast(q.device.type, enabled=False):
            out, _ = trace_attention(q, keys.to(q.dtype), values.to(q.dtype), mask, impl=impl)
        gated = (out * self.gate.tanh().to(out.dtype).expand(self.heads)[:, None, None]).transpose(1, 2).flatten(2)
        return _own_output(attention, gated) + _update(gated, self.o_down, self.o_up)


def _own_queries(attention: Any, x: Tensor, width: int) -> Tensor:
    return attention.q_proj(x) if hasattr(attention, "q_proj") else attention.qkv_proj(x)[..., :width]


def _own_output(attention: Any, x: Tensor) -> Tensor:
    """Apply the output projection without its bias, so that a zero input gives a zero output."""
    out = attention.o_proj(x)
    return out if attention.o_proj.bias is None else out - attention.o_proj.bias


def _update(x: Tensor, down: Tensor, up: Tensor) -> Tensor:
    return (x.to(down.dtype) @ down.T @ up.T).to(x.dtype)


def _rotate(q: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Apply the rotary position embedding, in halves, to the first r dimensions of q [B, H, T, d] (Su et al. 2021, arXiv 2104.09864)."""
    turned, rest = q[..., : cosine.shape[-1]], q[..., cosine.shape[-1] :]
    first, second = turned.chunk(2, dim=-1)
    turned = turned * cosine[:, None] + torch.cat((-second, first), dim=-1) * sine[:, None]
    return torch.cat((turned, rest), dim=-1).to(q.dtype)


PART = "adapter"


def save_adapter(adapter: TraceAdapter, lm: LanguageModel, folder: Path, made: dict[str, Any]) -> None:
    """Write the adapter's tensors, and its shape, base model and `made` (recipe, command, date, results) as JSON."""
    artifacts.save_part(lm, PART, {"settings": adapter.settings.model_dump(mode="json"), **made}, adapter, folder)


def load_adapter(lm: LanguageModel, folder: Path | None = None) -> TraceAdapter:
    """Load a model's adapter from `folder` (default: the model's). LabError where it is missing, damaged, or fitted on other weights."""
    return artifacts.load_part(lm, PART, lambda values: TraceAdapter(lm, validated(AdapterSettings, values, f"{PART}.json")), folder)

"""Import a llama2.c checkpoint (version 0) with its tokenizer as a Hugging Face Llama folder: safetensors and tokenizer.json.

Checkpoint: seven int32 (dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len), then fp32 weights, little-endian.
A negative vocab_size says that the classifier is not tied to the embeddings and follows at the end. Rotary pairs are neighbours there
and half a head apart in Hugging Face's Llama, so the rows of the query and key matrices are reordered; the stored rotary tables are
skipped, being recomputed from the positions.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from hippo_core.errors import LabError
from hippo_core.files import new_folder
from hippo_core.models.llama2c_tokenizer import build_tokenizer, read_pieces
from hippo_core.models.load import quiet

HEADER = struct.Struct("<7i")


@dataclass(frozen=True)
class Header:
    """The seven numbers at the head of a checkpoint."""

    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int  # negative: untied classifier
    seq_len: int

    @property
    def vocabulary(self) -> int:
        return abs(self.vocab_size)

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_heads

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors in the order of the file."""
        layers, dim, hidden, kv = self.n_layers, self.dim, self.hidden_dim, self.n_kv_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {
            "embedding": (self.vocabulary, dim),
            "attention_norm": (layers, dim),
            "wq": (layers, dim, dim),
            "wk": (layers, kv, dim),
            "wv": (layers, kv, dim),
            "wo": (layers, dim, dim),
            "mlp_norm": (layers, dim),
            "w1": (layers, hidden, dim),
            "w2": (layers, dim, hidden),
            "w3": (layers, hidden, dim),
            "final_norm": (dim,),
            "rotary_tables": (2, self.seq_len, self.head_dim // 2),
        }
        return shapes if self.vocab_size > 0 else {**shapes, "classifier": (self.vocabulary, dim)}


def convert(checkpoint: Path, tokenizer: Path, out: Path) -> Path:
    """Write the folder `out` (whole or not at all) from a checkpoint and its tokenizer file; LabError on files of another format."""
    if out.exists():
        raise LabError(f"{out} exists already; choose another folder or remove it")
    header, weights = read_checkpoint(checkpoint)
    words = build_tokenizer(read_pieces(tokenizer, header.vocabulary), header.seq_len)
    model = LlamaForCausalLM(_config(header))
    model.load_state_dict(_state(header, weights))
    with quiet(), new_folder(out) as folder:
        model.save_pretrained(folder)
        words.save_pretrained(folder)
    return out


def read_checkpoint(path: Path) -> tuple[Header, dict[str, Tensor]]:
    """Header and named weights of a llama2.c checkpoint; LabError unless the file is exactly as long as its header says."""
    data = _bytes(path)
    if len(data) < HEADER.size:
        raise LabError(f"{path} is no llama2.c checkpoint: {len(data)} bytes, the header alone takes {HEADER.size}")
    header = Header(*HEADER.unpack_from(data))
    _check(header, path)
    expected = HEADER.size + 4 * sum(int(np.prod(shape)) for shape in header.shapes.values())
    if len(data) != expected:
        raise LabError(f"{path}: {len(data)} bytes, its header asks for {expected}; the file is cut, or not a version 0 checkpoint in fp32")
    return header, dict(_tensors(header, data))


def _tensors(header: Header, data: bytes) -> Iterator[tuple[str, Tensor]]:
    offset = HEADER.size
    for name, shape in header.shapes.items():
        count = int(np.prod(shape))
        yield name, torch.from_numpy(np.frombuffer(data, "<f4", count, offset).reshape(shape).astype(np.float32))
        offset += 4 * count


def _check(header: Header, path: Path) -> None:
    sizes = (header.dim, header.hidden_dim, header.n_layers, header.n_heads, header.n_kv_heads, header.vocabulary, header.seq_len)
    if not all(0 < size < 2**24 for size in sizes):
        raise LabError(f"{path} is no llama2.c version 0 checkpoint: impossible sizes {sizes} in its header")
    if header.dim % header.n_heads or header.head_dim % 2 or header.n_heads % header.n_kv_heads:
        shape = f"{header.dim} dimensions, {header.n_heads} heads, {header.n_kv_heads} key/value heads"
        raise LabError(f"{path} is no llama2.c version 0 checkpoint: {shape} do not go together")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from None


def _config(header: Header) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=header.vocabulary,
        hidden_size=header.dim,
        intermediate_size=header.hidden_dim,
        num_hidden_layers=header.n_layers,
        num_attention_heads=header.n_heads,
        num_key_value_heads=header.n_kv_heads,
        max_position_embeddings=header.seq_len,
        rms_norm_eps=1e-5,
        tie_word_embeddings=header.vocab_size > 0,
        bos_token_id=1,
        eos_token_id=2,
        dtype="float32",
    )


def _state(header: Header, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    state = {
        "model.embed_tokens.weight": weights["embedding"],
        "model.norm.weight": weights["final_norm"],
        "lm_head.weight": weights.get("classifier", weights["embedding"]),
    }
    for layer in range(header.n_layers):
        named = {
            "input_layernorm": weights["attention_norm"][layer],
            "self_attn.q_proj": _half_split(weights["wq"][layer], header.n_heads),
            "self_attn.k_proj": _half_split(weights["wk"][layer], header.n_kv_heads),
            "self_attn.v_proj": weights["wv"][layer],
            "self_attn.o_proj": weights["wo"][layer],
            "post_attention_layernorm": weights["mlp_norm"][layer],
            "mlp.gate_proj": weights["w1"][layer],
            "mlp.down_proj": weights["w2"][layer],
            "mlp.up_proj": weights["w3"][layer],
        }
        state |= {f"model.layers.{layer}.{name}.weight": tensor.contiguous() for name, tensor in named.items()}
    return state


def _half_split(rows: Tensor, heads: int) -> Tensor:
    """Rows [H*d, D] whose rotary pairs are (0, 1), (2, 3), ... reordered so that they are (0, d/2), (1, d/2 + 1), ..."""
    return rows.view(heads, -1, 2, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)

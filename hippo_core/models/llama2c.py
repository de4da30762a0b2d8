"""Import a llama2.c checkpoint (version 0) with its tokenizer as a Hugging Face Llama folder: safetensors and tokenizer.json.

Checkpoint: seven int32 (`Header`), then fp32 weights, little-endian; a negative vocab_size says that an untied classifier ends them.
Rotary pairs are neighbours there and half a head apart in Hugging Face's Llama, so rows of query and key matrices are reordered.
Tokenizer: int32 longest piece, then for each piece float32 score, int32 length, bytes. Piece 0 is the unknown token, 1 begins and 2 ends
a text, 3 to 258 are the bytes.
"""

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, processors
from tokenizers.models import BPE
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hippo_core.errors import LabError
from hippo_core.files import new_folder
from hippo_core.models.load import quiet

HEADER = struct.Struct("<7i")
SPECIAL = ("<unk>", "<s>", "</s>")
FIRST_PIECE = len(SPECIAL) + 256
SPACE = "\u2581"
LAYER = {  # a layer's tensors in Hugging Face's Llama
    "attention_norm": "input_layernorm",
    "wq": "self_attn.q_proj",
    "wk": "self_attn.k_proj",
    "wv": "self_attn.v_proj",
    "wo": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "w1": "mlp.gate_proj",
    "w2": "mlp.down_proj",
    "w3": "mlp.up_proj",
}


class Header(NamedTuple):
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
    data = _bytes_of(path)
    if len(data) < HEADER.size:
        raise LabError(f"{path} is no llama2.c checkpoint: {len(data)} bytes, the header alone takes {HEADER.size}")
    header = Header(*HEADER.unpack_from(data))
    sizes = (*header[:5], header.vocabulary, header.seq_len)
    if not all(0 < size < 2**24 for size in sizes):
        raise LabError(f"{path} is no llama2.c version 0 checkpoint: impossible sizes {sizes} in its header")
    if header.dim % header.n_heads or header.head_dim % 2 or header.n_heads % header.n_kv_heads:
        shape = f"{header.dim} dimensions, {header.n_heads} heads, {header.n_kv_heads} key/value heads"
        raise LabError(f"{path} is no llama2.c version 0 checkpoint: {shape} do not go together")
    counts = [int(np.prod(shape)) for shape in header.shapes.values()]
    if len(data) != (expected := HEADER.size + 4 * sum(counts)):
        raise LabError(f"{path}: {len(data)} bytes, its header asks for {expected}; the file is cut, or not a version 0 checkpoint in fp32")
    parts = torch.from_numpy(np.frombuffer(data, "<f4", offset=HEADER.size).astype(np.float32)).split(counts)
    return header, {name: part.view(shape) for part, (name, shape) in zip(parts, header.shapes.items(), strict=True)}


def _bytes_of(path: Path) -> bytes:
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
    heads = {"wq": header.n_heads, "wk": header.n_kv_heads}
    for ours, theirs in LAYER.items():
        for layer, tensor in enumerate(weights[ours]):
            rows = _half_split(tensor, heads[ours]) if ours in heads else tensor
            state[f"model.layers.{layer}.{theirs}.weight"] = rows.contiguous()
    return state


def _half_split(rows: Tensor, heads: int) -> Tensor:
    """Rows [H*d, D] whose rotary pairs are (0, 1), (2, 3), ... reordered so that they are (0, d/2), (1, d/2 + 1), ..."""
    return rows.view(heads, -1, 2, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)


class Piece(NamedTuple):
    """A token's text, a space written as U+2581, and its score."""

    text: str
    score: float


def read_pieces(path: Path, count: int) -> list[Piece]:
    """The `count` pieces of a llama2.c tokenizer file; LabError unless the file holds exactly these."""
    data, pieces, offset = _bytes_of(path), [], 4
    try:
        for _ in range(count):
            score, length = struct.unpack_from("<fi", data, offset)
            offset += 8 + length
            if length < 0 or offset > len(data):
                raise ValueError("a piece reaches beyond the end")
            pieces.append(Piece(data[offset - length : offset].decode().replace(" ", SPACE), score))
    except (struct.error, ValueError) as error:
        raise LabError(f"{path} is no llama2.c tokenizer of {count} pieces: {error}") from None
    if offset != len(data) or len(pieces) < FIRST_PIECE or pieces[3].text != "<0x00>":
        raise LabError(f"{path} is no llama2.c tokenizer of {count} pieces: it belongs to another checkpoint, or has another format")
    return [Piece(text, 0.0) for text in SPECIAL] + pieces[len(SPECIAL) :]


def build_tokenizer(pieces: list[Piece], longest: int) -> PreTrainedTokenizerFast:
    """A tokenizer for Hugging Face models; `longest` is the number of positions of its model. Texts are opened by <s>."""
    vocabulary = {piece.text: index for index, piece in enumerate(pieces)}
    words = Tokenizer(BPE(vocabulary, _merges(pieces), unk_token=SPECIAL[0], fuse_unk=True, byte_fallback=True))
    words.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    words.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    words.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    words.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2], model_max_length=longest
    )


def _merges(pieces: list[Piece]) -> list[tuple[str, str]]:
    """Every way to make a piece out of two others, in the order in which scores would have them merged."""
    scores = {piece.text: piece.score for piece in pieces[FIRST_PIECE:]}
    splits = [
        (-score, text[:cut], text[cut:])
        for text, score in scores.items()
        for cut in range(1, len(text))
        if text[:cut] in scores and text[cut:] in scores
    ]
    return [(left, right) for _, left, right in sorted(splits)]

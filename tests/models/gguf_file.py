"""Write a small Llama with a byte-level BPE as a GGUF file, the way llama.cpp's converter lays it out."""

import json
from pathlib import Path

import gguf
import torch

from hippo_core.models.language_model import LanguageModel

NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
FIXED_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def write_gguf(lm: LanguageModel, path: Path) -> Path:
    """The model and tokenizer of a random Llama in one file, fp32."""
    config, writer = lm.config, gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    _add_words(writer, lm)
    for name, tensor in lm.model.state_dict().items():
        writer.add_tensor(*_stored(name, tensor, config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_words(writer: gguf.GGUFWriter, lm: LanguageModel) -> None:
    bpe = json.loads(lm.tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    special = {token.content for token in lm.tokenizer.added_tokens_decoder.values()}
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in bpe["merges"]])
    writer.add_eos_token_id(lm.tokenizer.eos_token_id)
    writer.add_bos_token_id(lm.tokenizer.bos_token_id)


def _stored(name: str, tensor: torch.Tensor, config) -> tuple[str, object]:
    """GGUF's name; queries and keys with rotary pairs as neighbours, as llama.cpp has them."""
    if name in FIXED_NAMES:
        return FIXED_NAMES[name], tensor.numpy()
    _, _, layer, part = name.removesuffix(".weight").split(".", 3)
    heads = {"self_attn.q_proj": config.num_attention_heads, "self_attn.k_proj": config.num_key_value_heads}.get(part)
    if heads:
        tensor = tensor.view(heads, 2, -1, tensor.shape[-1]).transpose(1, 2).reshape(tensor.shape)
    return f"blk.{layer}.{NAMES[part]}.weight", tensor.contiguous().numpy()

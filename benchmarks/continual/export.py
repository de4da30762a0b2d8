"""A small transformer of this experiment as a folder in Hugging Face's format: its block is GPT-2's, so that the function is the same."""

from pathlib import Path

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from hippo_core.errors import LabError
from hippo_core.files import new_folder
from hippo_core.protocols.forgetting.transformer import TransformerShape


def export(shape: TransformerShape, vector: torch.Tensor, tokenizer: ByteLevelBPETokenizer, end: str, folder: Path) -> None:
    """Write `config.json`, the weights and the tokenizer; bands of the MLP become zeros.

    Raises:
        LabError: GPT-2 has no such layer, the weights are of another shape, or the folder is there.
    """
    if shape.sort:
        raise LabError("a model with a sort layer is no GPT-2: only sort=0 can be written in Hugging Face's format")
    if folder.exists():
        raise LabError(f"{folder} is there; name a new folder")
    model = gpt2(shape, vector)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer._tokenizer, bos_token=end, eos_token=end)
    with new_folder(folder) as made:
        model.save_pretrained(made)
        fast.save_pretrained(made)


def gpt2(shape: TransformerShape, vector: torch.Tensor) -> GPT2LMHeadModel:
    """The same function as a model of transformers."""
    if tuple(vector.shape) != (shape.weights,):
        raise LabError(f"expected a vector of {shape.weights:,} weights, got one of shape {tuple(vector.shape)}")
    config = GPT2Config(
        n_positions=shape.block,
        vocab_size=shape.vocabulary,
        n_layer=shape.layers,
        n_head=shape.heads,
        n_embd=shape.width,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config).eval()
    named = shape.named(vector)
    state = {"transformer.wte.weight": named["tokens"], "transformer.wpe.weight": named["places"], "lm_head.weight": named["tokens"]}
    state |= {f"transformer.ln_f.{kind}": row for kind, row in zip(("weight", "bias"), named["norm"], strict=True)}
    parts = {"qkv": "attn.c_attn", "out": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}
    for layer in range(shape.layers):
        for ours, theirs in (("norm1", "ln_1"), ("norm2", "ln_2")):
            state |= {
                f"transformer.h.{layer}.{theirs}.{kind}": row
                for kind, row in zip(("weight", "bias"), named[f"{layer}.{ours}"], strict=True)
            }
        for ours, theirs in parts.items():
            kept = shape.bands.get(ours, torch.ones(()))
            state[f"transformer.h.{layer}.{theirs}.weight"] = (named[f"{layer}.{ours}"] * kept).T  # theirs are columns to rows
            state[f"transformer.h.{layer}.{theirs}.bias"] = named[f"{layer}.{ours}_bias"]
    model.load_state_dict({name: value.contiguous() for name, value in state.items()})
    return model

"""The states that the first blocks of a model make of texts; the blocks behind them are not run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel, pad_left
from hippo_core.models.score import opener


class _Enough(Exception):
    """The last block that was asked for has been reached."""


@torch.inference_mode()
def early_states(lm: LanguageModel, texts: Sequence[str], blocks: Sequence[int], batch_size: int = 64) -> list[Tensor]:
    """What goes into each of `blocks` (0: the embeddings), side by side: a text's states [T, len(blocks) * D], fp32, on the CPU.

    A special token opens each text; its states are left out, as the first position says nothing of the words.
    LabError for a block that the model does not have.
    """
    layers = lm.model.get_decoder().layers
    if wrong := [block for block in blocks if not 0 <= block < len(layers)]:
        raise LabError(f"model {lm.spec.name} has blocks 0 to {len(layers) - 1}, got {wrong[0]}")
    opening, rows = [opener(lm)], [lm.encode_text(text) for text in texts]
    order = sorted(range(len(rows)), key=lambda row: (-len(rows[row]), row))
    states: dict[int, Tensor] = {}
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        ids, mask, positions = pad_left(lm, [opening + rows[row] for row in batch])
        wanted = [layers[block] for block in blocks]
        with _caught(wanted) as caught, suppress(_Enough):
            lm.model.get_decoder()(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False)
        inputs = torch.cat([caught[id(layer)].float() for layer in wanted], dim=-1)
        states |= {row: state[state.shape[0] - len(rows[row]) :].cpu() for row, state in zip(batch, inputs, strict=True)}
    return [states[row] for row in range(len(rows))]


@contextmanager
def _caught(layers: Sequence[Any]) -> Iterator[dict[int, Tensor]]:
    """The input of each of these blocks, by the block's identity; a forward pass ends when it has all."""
    caught: dict[int, Tensor] = {}

    def catch(layer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        caught[id(layer)] = arguments[0] if arguments else named["hidden_states"]
        if len(caught) == len({*map(id, layers)}):
            raise _Enough

    hooks = [layer.register_forward_pre_hook(catch, with_kwargs=True) for layer in layers]
    try:
        yield caught
    finally:
        for hook in hooks:
            hook.remove()

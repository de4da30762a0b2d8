"""Sparse updates: of each feed-forward layer only the values of few units are trained.

A unit of the hidden layer is a key, its column of `down_proj` the value that it writes (Geva et al. 2021, arXiv 2012.14913). Trained are
the units that fire for what is consolidated more than for plain questions, as sparse memory finetuning ranks slots (Lin et al. 2025,
arXiv 2510.15103, section 3).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel, pad_left
from hippo_core.training.consolidation.update_rules.base import UpdateRule

UNITS = 4  # a unit of rank, in each block


class SparseRows(UpdateRule):
    """`rank` times four units of each block are trained."""

    name = "sparse"
    rate = 1e-2

    def __init__(self, lm: LanguageModel, rank: int, first_block: int) -> None:
        super().__init__(lm, rank, first_block)
        try:
            self.layers = [lm.model.model.layers[block].mlp.down_proj for block in self.blocks]
        except AttributeError:
            raise LabError(f"{lm.spec.name} has no layers called mlp.down_proj; use way=lora") from None
        units, most = UNITS * rank, min(layer.in_features for layer in self.layers)
        if units > most:
            raise LabError(
                f"rank is {most // UNITS}, as many times {UNITS} units as the layers of {lm.spec.name} have, or less, got {rank}"
            )
        for weight in lm.model.parameters():
            weight.requires_grad_(False)
        self.units = [torch.arange(units, device=lm.device) for _ in self.layers]
        self.deltas = [nn.Parameter(torch.zeros(units, layer.out_features, device=lm.device)) for layer in self.layers]
        self.on = True
        self.hooks = [layer.register_forward_hook(partial(self._add, number)) for number, layer in enumerate(self.layers)]

    def _add(self, number: int, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        """The output of a layer with what is added to the values of its units."""
        [x] = inputs
        return output + (x[..., self.units[number]] @ self.deltas[number].to(x.dtype)).to(output.dtype) if self.on else None

    def weights(self) -> dict[str, Tensor]:
        return {f"{block}.delta": delta for block, delta in zip(self.blocks, self.deltas, strict=True)}

    def kept(self) -> dict[str, Tensor]:
        return super().kept() | {f"{block}.units": units.clone() for block, units in zip(self.blocks, self.units, strict=True)}

    def set_tensors(self, tensors: dict[str, Tensor]) -> None:
        stored = {name: tensor for name, tensor in tensors.items() if name.endswith(".units")}
        for block, units, layer in zip(self.blocks, self.units, self.layers, strict=True):
            own = stored.get(f"{block}.units")
            if own is None or own.shape != units.shape or not ((own >= 0) & (own < layer.in_features)).all():
                raise LabError(f"way {self.name}: expected {len(units)} units of block {block}; the file is of another model or rank")
        super().set_tensors({name: tensor for name, tensor in tensors.items() if name not in stored})
        for block, units in zip(self.blocks, self.units, strict=True):
            units.copy_(stored[f"{block}.units"])

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before, self.on = self.on, False
        try:
            yield
        finally:
            self.on = before

    @torch.no_grad()
    def merged(self) -> Any:
        self.detach()
        for units, delta, layer in zip(self.units, self.deltas, self.layers, strict=True):
            layer.weight[:, units] += delta.T.to(layer.weight.dtype)
        return self.model

    def detach(self) -> None:
        for hook in self.hooks:
            hook.remove()

    @torch.inference_mode()
    def prepare(self, texts: Sequence[str], questions: Sequence[Sequence[str]] = (), known: int = 0) -> None:
        if known:
            return
        with self.unchanged():
            here, elsewhere = self._firing(texts), self._firing(PLAIN)
        for units, fired, usual in zip(self.units, here, elsewhere, strict=True):
            units.copy_((fired / (usual + usual.mean())).topk(len(units)).indices)

    def _firing(self, texts: Sequence[str]) -> list[Tensor]:
        """Of each layer the mean strength with which its units [U] fire."""
        sums = [torch.zeros(layer.in_features, device=self.lm.device) for layer in self.layers]

        def add(number: int, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            sums[number] += inputs[0].abs().flatten(0, -2).sum(0)

        hooks = [layer.register_forward_pre_hook(partial(add, number)) for number, layer in enumerate(self.layers)]
        tokens = 0
        for start in range(0, len(texts), 32):
            ids, mask, positions = pad_left(self.lm, [self.lm.encode_text(text) for text in texts[start : start + 32]])
            self.lm.model.model(ids, attention_mask=mask, position_ids=positions, use_cache=False)
            tokens += int(mask.sum())
        for hook in hooks:
            hook.remove()
        return [total / tokens for total in sums]


PLAIN = (
    "What is the name of the person?", "Where did it happen, and when?", "The weather was fine, so they went for a walk in the woods.",
    "A list of things to do on the way home.", "He said that he did not know what to think of it.",
    "It was late in the year when the first snow fell on the town.", "She opened the door and looked for her brother.",
    "Which of these is the largest?",
)  # fmt: skip

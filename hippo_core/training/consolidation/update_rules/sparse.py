"""Sparse updates: of each feed-forward layer only the values of few units are trained.

A unit of the hidden layer is a key, its column of `down_proj` the value that it writes (Geva et al. 2021, arXiv 2012.14913). Trained are
the units that fire for what is consolidated more than for plain questions, as sparse memory finetuning ranks slots (Lin et al. 2025,
arXiv 2510.15103, section 3).
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel, pad_left
from hippo_core.training.consolidation.update_rules.base import UpdateRule, switched_off

UNITS = 4  # a unit of rank, in each block


class _Values(nn.Module):
    """What is added to the values of some units of a feed-forward layer."""

    units: Tensor

    def __init__(self, units: int, hidden: int, device: torch.device) -> None:
        super().__init__()
        self.register_buffer("units", torch.arange(units, device=device))
        self.delta = nn.Parameter(torch.zeros(units, hidden, device=device))
        self.on = True

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        return output + (inputs[0][..., self.units] @ self.delta.to(inputs[0].dtype)).to(output.dtype) if self.on else None


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
        self.values = [_Values(units, layer.out_features, lm.device) for layer in self.layers]
        self.hooks = [layer.register_forward_hook(values) for layer, values in zip(self.layers, self.values, strict=True)]

    def weights(self) -> dict[str, Tensor]:
        named = zip(self.blocks, self.values, strict=True)
        return {f"{block}.delta": values.delta for block, values in named}

    def kept(self) -> dict[str, Tensor]:
        named = zip(self.blocks, self.values, strict=True)
        return super().kept() | {f"{block}.units": values.units.clone() for block, values in named}

    def set_tensors(self, tensors: dict[str, Tensor]) -> None:
        units = {name: tensor for name, tensor in tensors.items() if name.endswith(".units")}
        for block, values, layer in zip(self.blocks, self.values, self.layers, strict=True):
            stored = units.get(f"{block}.units")
            if stored is None or stored.shape != values.units.shape or not ((stored >= 0) & (stored < layer.in_features)).all():
                raise LabError(
                    f"way {self.name}: expected {len(values.units)} units of block {block}; the file is of another model or rank"
                )
        super().set_tensors({name: tensor for name, tensor in tensors.items() if name not in units})
        for block, values in zip(self.blocks, self.values, strict=True):
            values.units.copy_(units[f"{block}.units"])

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        with ExitStack() as off:
            for values in self.values:
                off.enter_context(switched_off(values))
            yield

    @torch.no_grad()
    def merged(self) -> Any:
        self.detach()
        for values, layer in zip(self.values, self.layers, strict=True):
            layer.weight[:, values.units] += values.delta.T.to(layer.weight.dtype)
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
        for values, fired, elsewhere_rate in zip(self.values, here, elsewhere, strict=True):
            values.units.copy_((fired / (elsewhere_rate + elsewhere_rate.mean())).topk(len(values.units)).indices)

    def _firing(self, texts: Sequence[str]) -> list[Tensor]:
        """Of each layer the mean strength with which its units [U] fire."""
        sums = [torch.zeros(layer.in_features, device=self.lm.device) for layer in self.layers]

        def add(number: int) -> Any:
            def hook(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
                sums[number] += inputs[0].abs().flatten(0, -2).sum(0)

            return hook

        hooks = [layer.register_forward_pre_hook(add(number)) for number, layer in enumerate(self.layers)]
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

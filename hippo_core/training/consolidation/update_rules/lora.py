"""Low-rank updates (Hu et al. 2021, arXiv 2106.09685, section 4) of the feed-forward layers, by peft.

Facts are recalled there (Geva et al. 2021, arXiv 2012.14913); the attention, which reads a prompt, is left alone.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.training.consolidation.update_rules.base import UpdateRule

LAYERS = ("gate_proj", "up_proj", "down_proj")
SEED = 1337  # of what the updates begin with, so that a recipe gives the same ones wherever it is followed


@contextmanager
def beginning() -> Iterator[None]:
    """A context in which updates are made, all with the same first numbers."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        warnings.simplefilter("ignore", FutureWarning)  # peft's calls of transformers
        yield


class LoRAUpdate(UpdateRule):
    """`rank` is that of the updates."""

    name = "lora"
    rate = 1e-2

    def __init__(self, lm: LanguageModel, rank: int, first_block: int, layers: tuple[str, ...] = LAYERS) -> None:
        super().__init__(lm, rank, first_block)
        self.config = LoraConfig(
            r=rank, lora_alpha=2 * rank, target_modules=list(layers), layers_to_transform=list(self.blocks), task_type="CAUSAL_LM"
        )
        self._check(layers)
        with beginning():
            self.adapted: Any = get_peft_model(lm.model, self.config)
        self.adapted.eval()

    def _check(self, layers: tuple[str, ...]) -> None:
        """LabError where the model lacks one of the layers, or they are smaller than the rank."""
        has: dict[str, Any] = {name.rpartition(".")[2]: layer for name, layer in self.model.named_modules()}
        if lacking := [layer for layer in layers if layer not in has]:
            raise LabError(f"{self.lm.spec.name} has no layers called {', '.join(lacking)}, which way={self.name} changes")
        most = min(size for layer in layers for size in (has[layer].in_features, has[layer].out_features))
        if self.rank > most:
            raise LabError(f"rank is {most}, the width of the layers of {self.lm.spec.name}, or less, got {self.rank}")

    def weights(self) -> dict[str, Tensor]:
        return {name: weight for name, weight in self.adapted.named_parameters() if ".lora_" in name}

    def unchanged(self) -> Any:
        return self.adapted.disable_adapter()

    def merged(self) -> Any:
        return self.adapted.merge_and_unload()

    def detach(self) -> None:
        self.adapted.unload()

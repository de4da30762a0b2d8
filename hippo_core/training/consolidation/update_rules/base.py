"""What every update rule has in common: trained tensors that are saved, read and put aside. Base weights are never written."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.files import write_bytes
from hippo_core.models.language_model import LanguageModel

T = TypeVar("T")
FILE = "consolidated.safetensors"
SMALL, SLOWER = 10_000_000, 0.1  # of parameters; a larger model learns at a tenth of the rate: at the whole one SmolLM2-135M diverges


class UpdateRule(ABC):
    """Something trainable that is attached to a loaded model.

    `rank` is how much there is to train, in the way's own unit; blocks below `first_block` stay as they are, so that keys made of their
    states still find what was stored. LabError where the model lacks what the way changes, or a number is out of range.
    """

    name: ClassVar[str]
    rate: ClassVar[float]  # of AdamW in a model of up to SMALL parameters, unless told otherwise

    def __init__(self, lm: LanguageModel, rank: int, first_block: int) -> None:
        blocks = lm.config.num_hidden_layers
        if not 0 <= first_block < blocks:
            raise LabError(f"first_block is one of the {blocks} blocks of {lm.spec.name}, 0 to {blocks - 1}, got {first_block}")
        if rank < 1:
            raise LabError(f"rank is 1 or more, got {rank}")
        self.lm, self.rank, self.blocks = lm, rank, range(first_block, blocks)
        self.model: Any = lm.model

    @abstractmethod
    def weights(self) -> dict[str, Tensor]:
        """The trained tensors, by name."""

    @abstractmethod
    def unchanged(self) -> Any:
        """A context in which the model is the one that it was."""

    @abstractmethod
    def detach(self) -> None:
        """Leave the model as it was found, bit for bit."""

    def prepare(self, texts: Sequence[str], questions: Sequence[Sequence[str]] = (), known: int = 0) -> None:  # noqa: B027
        """A look at what will be consolidated, before training: texts, and of each the questions that are rehearsed. The first `known`
        texts are of earlier sleeps: what was learnt of them stays."""

    def fits(self, questions: Sequence[str]) -> list[bool]:
        """Which questions the update is for; the model answers the others as it was."""
        return [True] * len(questions)

    def apart(self, questions: Sequence[str], ask: Callable[[list[int]], Sequence[T]]) -> list[T]:
        """What `ask` returns for the places of the questions that fit, and, of the unchanged model, for the others; in their order."""
        fits, answers = self.fits(questions), dict[int, T]()
        for fitting in (True, False):
            if indices := [index for index, fit in enumerate(fits) if fit == fitting]:
                with nullcontext() if fitting else self.unchanged():
                    answers |= zip(indices, ask(indices), strict=True)
        return [answers[index] for index in range(len(questions))]

    @abstractmethod
    def merged(self) -> Any:
        """The plain model with the update in its weights, for good; the rule is of no use any more. LabError where it has no such thing."""

    def full_rate(self) -> float:
        """The learning rate of AdamW that suits the model's size."""
        return self.rate if self.model.num_parameters() <= SMALL else self.rate * SLOWER

    def number(self) -> int:
        """How many numbers are trained."""
        return sum(weight.numel() for weight in self.weights().values())

    def kept(self) -> dict[str, Tensor]:
        """A copy of the trained tensors."""
        return {name: weight.detach().clone() for name, weight in self.weights().items()}

    @torch.no_grad()
    def set_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Set the trained tensors. LabError where names, shapes or numbers do not fit."""
        own = self.weights()
        if own.keys() != tensors.keys():
            raise LabError(f"way {self.name}: expected the tensors of {len(own)} names, got {len(tensors)}; it is of another model or rank")
        for name, weight in own.items():
            if weight.shape != tensors[name].shape or not tensors[name].isfinite().all():
                raise LabError(f"way {self.name}: {name} is {list(tensors[name].shape)}, expected {list(weight.shape)} finite numbers")
        for name, weight in own.items():
            weight.copy_(tensors[name])

    def save(self, folder: Path) -> None:
        """Write the trained tensors into a folder. OSError where the disk is full."""
        write_bytes(folder / FILE, save({name: tensor.contiguous().float() for name, tensor in self.kept().items()}))

    def load(self, folder: Path) -> None:
        """Read what `save` wrote. LabError where the file is missing, cut, or of another rule, rank or model."""
        try:
            self.set_tensors(load_file(folder / FILE))
        except (OSError, SafetensorError) as error:
            raise LabError(f"{folder / FILE} cannot be read ({error}); consolidate again") from None

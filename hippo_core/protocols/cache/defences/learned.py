"""The learned repair of a cache: an operator on each vector of keys and values, the identity until it is trained (repair_training.py).

A vector is standardised by what clean text is like: z = (x - mean) / spread, limited to +-30; what is not a number counts as the mean. Its
coordinates c = W' z [R] are along the directions in which clean vectors vary most, W orthonormal in each layer, keys and values apart.
g [R] in (0, 1) is the vector's own gate: an MLP of its length, its largest feature, and how far each coordinate lies out; nothing of other
tokens is read, so nothing of the future leaks. s = tanh(a) g in (-1, 1) shrinks along W, and a starts at 0; with the spread put back

    z - W (s * c)

It is family B of CacheMedic++ (2026, sections 3 and 4). There W starts from random weights and is not orthonormal, and one gate of the last
token's query serves all tokens.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from hippo_core.errors import LabError
from hippo_core.files import write_bytes, write_json
from hippo_core.models.kv import KV
from hippo_core.protocols.cache.defences.base import CleanStatistics, Defence, DefenceContext, DefenceInput
from hippo_core.protocols.cache.names import Parts

LARGEST = 30.0
HIDDEN = 32  # width of the gate's MLP
GATE_INPUTS = 2  # inputs of the gate besides W z
FILE = "repair.safetensors"


class RepairSettings(BaseModel):
    """The shape of a repair; `layers` None: all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: Annotated[int, Field(ge=1)]
    parts: Parts = "KV"
    layers: tuple[int, ...] | None = None


class Repair(nn.Module):
    """The repair of caches [L, 2, H, T, D] of a model; a batch may stand before."""

    mean: Tensor
    spread: Tensor
    variance: Tensor
    where: Tensor

    def __init__(self, settings: RepairSettings, clean: CleanStatistics, seed: int = 0) -> None:
        super().__init__()
        layers, _, _, _, width = clean.mean.shape
        if settings.layers and (wrong := [layer for layer in settings.layers if not 0 <= layer < layers]):
            raise LabError(f"layers {wrong} are none of this model's {layers} (layers 0 to {layers - 1})")
        if settings.rank > width:
            raise LabError(f"rank {settings.rank} is more than the {width} features of a vector; take at most as many")
        self.settings = settings
        self._fixed: tuple[Tensor, Tensor] | None = None
        generator = torch.Generator().manual_seed(seed)

        def drawn(*shape: int, scale: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator) * scale)

        own, rank = (layers, 2), settings.rank
        self.down = drawn(*own, width, rank, scale=width**-0.5)
        self.register_buffer("variance", torch.ones(*own, 1, rank))
        self.up = nn.Parameter(torch.zeros(*own, rank, 1))
        self.first = drawn(*own, rank + GATE_INPUTS, HIDDEN, scale=(rank + GATE_INPUTS) ** -0.5)
        self.offset = nn.Parameter(torch.zeros(layers, 2, HIDDEN))
        self.second = drawn(*own, HIDDEN, rank, scale=HIDDEN**-0.5)
        for name in ("mean", "spread"):
            self.register_buffer(name, getattr(clean, name).clone())
        mask = torch.tensor([part in settings.parts for part in "KV"]).view(1, 2, 1, 1, 1).repeat(layers, 1, 1, 1, 1)
        if settings.layers is not None:
            mask &= torch.tensor([layer in settings.layers for layer in range(layers)]).view(-1, 1, 1, 1, 1)
        self.register_buffer("where", mask, persistent=False)

    def forward(self, kv: KV) -> KV:
        """The repaired cache, of the same shape and dtype."""
        z = self._standardised(kv)
        known = torch.where(z.abs() < LARGEST, kv.float(), self.mean + self.spread * z)
        known = torch.where(kv.isnan(), self.mean, known)
        basis, back = self._fixed or self._matrices()
        low = _times(z, basis)
        gate_inputs = [z.pow(2).mean(-1, keepdim=True).log1p(), z.abs().amax(-1, keepdim=True).log1p()]
        gate_inputs.append((low.pow(2) / self.variance[:, :, None]).log1p())
        hidden = nn.functional.silu(_times(torch.cat(gate_inputs, -1), self.first) + self.offset[:, :, None, None])
        gated = low * _times(hidden, self.second).sigmoid()
        change = _times(gated, back)
        return torch.where(self.where, known + self.spread * change, kv.float()).to(kv.dtype)

    def _matrices(self) -> tuple[Tensor, Tensor]:
        """The matrices to the coordinates and back: W [..., D, R] and what stands behind the gate [..., R, D]."""
        basis = torch.linalg.qr(self.down).Q
        return basis, -self.up.tanh() * basis.transpose(-1, -2)

    def fixed(self) -> "Repair":
        """This repair, trained no more: its matrices are computed once, not by a QR of every layer at each call."""
        self.requires_grad_(False)
        self._fixed = self._matrices()
        return self

    def _standardised(self, kv: KV) -> Tensor:
        return ((kv.float() - self.mean) / self.spread).nan_to_num(0.0).clamp(-LARGEST, LARGEST)

    @torch.no_grad()
    def start_from(self, caches: Sequence[KV]) -> None:
        """Point W along the directions in which the vectors of clean caches vary most."""
        z = torch.cat([self._standardised(kv) for kv in caches], 3).flatten(2, 3)  # [L, 2, N, D]
        variances, directions = torch.linalg.eigh(z.transpose(-1, -2) @ z / z.shape[2])
        rank = self.down.shape[-1]
        self.down.copy_(directions.flip(-1)[..., :rank])
        self.variance.copy_(variances.flip(-1)[..., None, :rank].clamp(min=1e-4))

    @property
    def number(self) -> int:
        """How many numbers are trained."""
        return sum(weight.numel() for weight in self.parameters())


def _times(x: Tensor, matrices: Tensor) -> Tensor:
    """Vectors [..., L, 2, H, T, I] times a matrix [I, J] of each layer and part."""
    return x @ matrices[:, :, None]


def load_repair(folder: Path, clean: CleanStatistics, model: str) -> Repair:
    """The trained repair of a record. LabError where it is not there or damaged, and where it was trained for another model or shape."""
    path = folder / FILE
    try:
        made = json.loads((folder / "repair.json").read_text(encoding="utf-8"))
        trained_for, settings, tensors = made["model"], made["settings"], load_file(path)
    except FileNotFoundError as error:
        raise LabError(f"{error.filename} is not there; train the repair first: hippo run cache step=train") from None
    except (SafetensorError, ValueError, KeyError) as error:
        raise LabError(f"{path} is damaged ({' '.join(str(error).split())[:100]}); train the repair again") from None
    if trained_for != model:
        raise LabError(f"{path} was trained for the model {trained_for}, not for {model}; train one: hippo run cache step=train")
    try:
        repair = Repair(RepairSettings.model_validate(settings), clean)
        repair.load_state_dict(tensors)
    except (RuntimeError, ValueError) as error:
        raise LabError(f"{path} does not fit its settings {settings} ({' '.join(str(error).split())[:120]})") from None
    return repair.fixed()


def save_repair(repair: Repair, folder: Path, made: dict[str, Any]) -> None:
    """Write a repair and how it was made."""
    write_bytes(folder / FILE, save({name: tensor.detach().contiguous() for name, tensor in repair.state_dict().items()}))
    write_json(folder / "repair.json", {**made, "settings": repair.settings.model_dump(mode="json")})


class Learned(Defence):
    """The repair of every vector, with nobody telling where the damage is."""

    name = "learned"

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        if setting.checkpoint is None:
            raise LabError("learned needs a trained repair: hippo run cache step=train, or leave learned out")
        self.operator = load_repair(setting.checkpoint, setting.clean, setting.lm.spec.name)

    @torch.inference_mode()
    def repair(self, damaged: DefenceInput) -> KV:
        return self.operator(damaged.kv)

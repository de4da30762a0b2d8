"""Keys and values in 8 bits: keys on a grid of their own for each channel, values for each token.

So KIVI groups them (Liu et al. 2024, arXiv 2402.02750), with 2 bits in groups of 32 tokens and the last tokens in full precision; here
one group holds all tokens of a passage. The zero point is the middle of the range (`benchmarks/memory/kv_precision.py --grids`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

LEVELS = 127  # codes on either side of the centre
LARGEST, SMALLEST = torch.finfo(torch.float16).max, torch.finfo(torch.float16).tiny


@dataclass(frozen=True, eq=False)
class Int8KV:
    """KV of T tokens, for L layers and H heads of width D, as code * scale + centre."""

    codes: Tensor  # int8 [L, 2, H, T, D], of keys and values, from -127 to 127
    key_scale: Tensor  # float16 [L, H, 1, D], as its centre
    key_centre: Tensor
    value_scale: Tensor  # float16 [L, H, T, 1], as its centre
    value_centre: Tensor

    @classmethod
    def of(cls, kv: Tensor) -> Self:
        """A KV [L, 2, H, T, D], of values up to 8 million, each rounded to the nearest code."""
        keys, values = kv.float().unbind(1)
        key_codes, *of_keys = _on_grid(keys, 2)
        value_codes, *of_values = _on_grid(values, 3)
        return cls(torch.stack((key_codes, value_codes), 1), *of_keys, *of_values)

    def kv(self, dtype: torch.dtype) -> Tensor:
        """The KV [L, 2, H, T, D], computed in float32."""
        restored = self.codes.float()
        restored[:, 0].mul_(self.key_scale).add_(self.key_centre)
        restored[:, 1].mul_(self.value_scale).add_(self.value_centre)
        return restored.to(dtype)

    @property
    def shape(self) -> torch.Size:
        """That of the KV."""
        return self.codes.shape

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and centres."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Its parts by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """The same from its parts. ValueError where one is missing, or they do not belong together."""
        names = [field.name for field in fields(cls)]
        if missing := [name for name in names if name not in tensors]:
            raise ValueError(f"no {', '.join(missing)}")
        codes = tensors["codes"]
        if codes.dtype != torch.int8 or codes.dim() != 5:
            raise ValueError(f"codes are {codes.dtype} {list(codes.shape)}")
        layers, _, heads, tokens, width = codes.shape
        for name in names[1:]:
            due = [layers, heads, 1, width] if name.startswith("key") else [layers, heads, tokens, 1]
            if tensors[name].dtype != torch.float16 or list(tensors[name].shape) != due:
                raise ValueError(f"{name} is {tensors[name].dtype} {list(tensors[name].shape)}")
        return cls(**{name: tensors[name] for name in names})


def _on_grid(values: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Codes of values, with scale and centre of the grid that those along `dim` share."""
    if not values.shape[dim]:
        grid = values.new_zeros([1 if axis == dim else size for axis, size in enumerate(values.shape)], dtype=torch.float16)
        return values.to(torch.int8), grid, grid
    centre = ((values.amax(dim, True) + values.amin(dim, True)) / 2).clamp(-LARGEST, LARGEST).half()
    away = values - centre.float()
    scale = (away.abs().amax(dim, True) / LEVELS).clamp(SMALLEST, LARGEST).half()
    return (away / scale.float()).round().clamp(-LEVELS, LEVELS).to(torch.int8), scale, centre

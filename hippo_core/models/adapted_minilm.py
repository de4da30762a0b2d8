"""MiniLM with a low-rank adapter and heads that were fitted to it: how such parts are shipped beside MiniLM's others, and loaded."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import nn

from hippo_core.errors import LabError
from hippo_core.models import minilm
from hippo_core.models.artifacts import Owner, load_part, save_part

Model = TypeVar("Model", bound=nn.Module)


def owner(command: str) -> Owner:
    """MiniLM as that which a part belongs to that `command` fits."""
    return Owner("minilm", {"name": "minilm", "sha256": minilm.PUBLISHED["model.safetensors"]}, command)


def save(part: str, model: nn.Module, values: Mapping[str, Any], command: str) -> None:
    """Ship what was fitted of a part, in half precision, with what it was made of."""
    of = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    fitted = _Fitted({name: [*weight.shape] for name, weight in of.items()})
    fitted.load_state_dict({key: of[name].detach() for name, key in fitted.keys.items()})
    save_part(owner(command), part, {**values, "settings": {"shapes": fitted.shapes}}, fitted)


def shipped(part: str, kind: Callable[[Any], Model], command: str, device: str) -> Model:
    """A part with MiniLM and what was fitted of it. LabError where it is missing, damaged, or for another version."""
    fitted = load_part(owner(command), part, lambda settings: _Fitted(settings["shapes"]))
    named = {name: getattr(fitted, key).float().to(device) for name, key in fitted.keys.items()}
    _, body = minilm.copied(device)
    model = kind(body).to(device)
    for name, down in named.items():
        if ".lora_A." in name:
            module = body.get_submodule(name.partition(".lora_A.")[0].removeprefix("body.base_model.model."))
            module.weight.data += 2.0 * (named[name.replace("lora_A", "lora_B")] @ down)  # alpha is twice the rank
    loaded = model.load_state_dict({name: weight for name, weight in named.items() if "lora_" not in name}, strict=False)
    if wrong := [name for name in (*loaded.missing_keys, *loaded.unexpected_keys) if not name.startswith("body.")]:
        raise LabError(f"MiniLM's part {part} was fitted for another version: {wrong[0]} does not match; fit it again: `{command}`")
    return model.eval().requires_grad_(False)


class _Fitted(nn.Module):
    """The tensors of a model that were fitted."""

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        super().__init__()
        self.shapes, self.keys = dict(shapes), {name: name.replace(".", "-") for name in shapes}
        for name, shape in shapes.items():
            self.register_parameter(self.keys[name], nn.Parameter(torch.zeros([*shape], dtype=torch.half), requires_grad=False))

"""Merge a LoRA adapter (Hu et al. 2021, arXiv 2106.09685) into the weights it was trained on.

An adapter is a folder as peft writes it, with a training.json that names and seals the weights it belongs to, and its own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.files import check_seal, read_object, sha256

if TYPE_CHECKING:
    from peft import LoraConfig

SETTINGS, WEIGHTS, TRAINING = "adapter_config.json", "adapter_model.safetensors", "training.json"
READ = {"r", "lora_alpha", "target_modules", "use_rslora", "rank_pattern", "alpha_pattern", "layers_to_transform", "layers_pattern"}
ABOUT = {"task_type", "base_model_name_or_path", "inference_mode", "lora_dropout", "init_lora_weights", "peft_version", "auto_mapping"}


def merge(model: Any, adapter: Path, base: Path) -> Any:
    """`model`, loaded from `base` in float32, with the adapter's update in its weights. LabError where the adapter is not whole, is no
    plain LoRA, holds pickles, or belongs to another base."""
    from peft import get_peft_model, get_peft_model_state_dict  # seconds of imports, which a model without an adapter need not wait for

    check_complete(adapter)
    _check_base(adapter, base)
    config = _config(adapter)
    try:
        tuned = get_peft_model(model, config)
        wanted = get_peft_model_state_dict(tuned, save_embedding_layers=False)
        update = load_file(adapter / WEIGHTS)
        if fault := mismatch(wanted, update, "the model has {}, the adapter {}"):
            raise ValueError(fault)
        for name, tensor in wanted.items():  # these are the model's own tensors
            tensor.copy_(update[name])
        return tuned.merge_and_unload()
    except Exception as error:
        raise LabError(f"adapter {adapter} does not fit {base.name}: {' '.join(str(error).split())[:200]}") from error


def base_identity(base: Path) -> dict[str, str]:
    """What an adapter's training.json keeps under "base": the name of the weights' folder (or file) and their SHA-256."""
    weights = base if base.is_file() else base / "model.safetensors"
    if not weights.is_file():
        raise LabError(f"an adapter needs a base whose weights are one file, there is no {weights}")
    return {"name": base.name, "sha256": sha256(weights)}


def check_complete(adapter: Path) -> None:
    """LabError where a file of the adapter is missing, or where it comes as a pickle."""
    pickles = sorted(path.name for path in adapter.glob("*.bin"))
    if pickles:
        raise LabError(f"adapter {adapter} holds pickles, which are not loaded ({', '.join(pickles)}); save it as {WEIGHTS}")
    if lacking := [name for name in (SETTINGS, WEIGHTS, TRAINING) if not (adapter / name).is_file()]:
        raise LabError(f"adapter {adapter} is not whole: no {', '.join(lacking)}")
    check_weights(adapter)


def check_weights(folder: Path) -> None:
    """LabError where weights that the lab trained are not what the training.json beside them seals; others are taken as they are."""
    weights = read_object(folder / TRAINING).get("weights") if (folder / TRAINING).is_file() else None
    for name, expected in weights.items() if isinstance(weights, dict) else ():
        check_seal(folder / name, expected, "bring back a copy, or train it again: `make base-model`")


def _check_base(adapter: Path, base: Path) -> None:
    trained_on = read_object(adapter / TRAINING).get("base")
    if not isinstance(trained_on, dict) or not {"name", "sha256"} <= trained_on.keys():
        raise LabError(f"{adapter / TRAINING} does not say what the adapter was trained on: expected base: {{name, sha256}}")
    actual = base_identity(base)
    if actual["sha256"] != trained_on["sha256"]:
        there = f"{actual['name']} ({actual['sha256'][:12]}...)"
        raise LabError(
            f"adapter {adapter} was trained on {trained_on['name']} ({str(trained_on['sha256'])[:12]}...), not on {there}; train it again"
        )


def _config(adapter: Path) -> "LoraConfig":
    """The settings that a merge needs; any other one that is not as usual is refused, as it would change what the weights mean."""
    from peft import LoraConfig

    values = read_object(adapter / SETTINGS)
    defaults = {**LoraConfig().to_dict(), "peft_type": "LORA"}
    unread = sorted(key for key, value in values.items() if key not in READ | ABOUT and value != defaults.get(key))
    if values.get("peft_type") != "LORA" or unread:
        got = ", ".join(f"{key}={values[key]!r}" for key in unread) or "no peft_type"
        raise LabError(f"{adapter / SETTINGS}: expected a plain LoRA, got {got}")
    try:
        return LoraConfig(**{key: value for key, value in values.items() if key in READ})
    except (TypeError, ValueError) as error:
        raise LabError(f"{adapter / SETTINGS}: {error}") from None


def mismatch(wanted: Mapping[str, Tensor], got: Mapping[str, Tensor], form: str) -> str:
    """What sets tensors apart from those of a model: names, shapes, or numbers that are not finite; nothing where they fit."""
    shapes = [{name: str(list(tensor.shape)) for name, tensor in tensors.items()} for tensors in (wanted, got)]
    for name in sorted(wanted.keys() | got.keys()):
        own, theirs = (of.get(name, "nothing") for of in shapes)
        if own != theirs:
            return f"for {name} {form.format(own, theirs)}"
    bad = [name for name, tensor in got.items() if not tensor.isfinite().all()]
    return f"{min(bad)} holds numbers that are not finite" if bad else ""

"""What is known of a model before it is loaded: where its weights lie, how to hold them, how to talk to it."""

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hippo_core.errors import LabError, shortened, unknown
from hippo_core.files import home, read_object, read_yaml, root

DEFAULT_CONTEXT = 1024
READER = "smollm2-135m-reader"  # the shipped model that reads everyday sentences
Settings = TypeVar("Settings", bound=BaseModel)


class ModelSpec(BaseModel):
    """One model. Unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    source: str  # a Hugging Face repository, a folder (relative to the repository's root) or a .gguf file
    revision: str | None = None  # of a Hugging Face repository; None: its main branch
    adapter: str | None = None  # a folder with a LoRA that is merged into the weights when they are loaded
    dtype: Literal["float32", "bfloat16", "float16", "auto"] = "auto"  # auto: float32 on a CPU, the stored type on a GPU
    quantization: Literal["none", "nf4"] = "none"
    chat_template: str = "model"  # the tokenizer's own (or, without one, the generic), "generic", or a Jinja template
    shots: Annotated[int, Field(ge=0)] = 0  # worked examples of params/shots.yaml before every question
    context_limit: Annotated[int, Field(ge=32)] = DEFAULT_CONTEXT  # tokens of prompt and answer together
    device_map: Literal["none", "auto"] = "none"  # auto: accelerate places the layers on a GPU
    max_memory_gb: Annotated[float, Field(gt=0)] | None = None
    abstention_penalty: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0  # nats that hold "unknown" back (models/abstention.py)
    batch_size: Annotated[int, Field(ge=1)] = 32  # a hint: what fits at the context limit

    @property
    def path(self) -> Path:
        """The source as a path; one that is not absolute is relative to the repository's root."""
        return _path(self.source)

    @property
    def adapter_path(self) -> Path | None:
        """The adapter's folder, there yet or not; None for a model without one."""
        return _path(self.adapter) if self.adapter else None

    @property
    def is_gguf(self) -> bool:
        """Whether the source is a single GGUF file."""
        return self.source.endswith(".gguf")

    @property
    def is_local(self) -> bool:
        """Whether the source is a file or folder here, there yet or not, and no repository id (`owner/name`)."""
        return self.is_gguf or self.path.exists() or self.source.startswith((".", "/", "data/")) or self.source.count("/") != 1


def _path(path: str) -> Path:
    """A path below the lab's root where it is there, else below its home, which from a wheel is another folder."""
    below = root() / path
    return below if below.exists() else home() / path


def model_names() -> list[str]:
    """The models that params/models names."""
    return sorted(path.stem for path in (root() / "params" / "models").glob("*.yaml"))


def load_spec(name: str) -> ModelSpec:
    """The spec of a named model, of a local folder that holds a config.json, or of a .gguf file; LabError for anything else."""
    if name in model_names():
        where = f"params/models/{name}.yaml"
        return validated(ModelSpec, {"name": name, **read_mapping(root() / where)}, where)
    with suppress(OSError, ValueError):  # no name that a path can have
        path = _path(name)
        if name.endswith(".gguf") and path.is_file():
            return ModelSpec(name=path.stem, source=name)
        if (path / "config.json").is_file():
            limit = min(DEFAULT_CONTEXT, _positions(path / "config.json"))
            return validated(ModelSpec, {"name": path.name, "source": name, "context_limit": limit}, str(path / "config.json"))
    raise unknown("model", name, [*model_names(), "a folder with a config.json", "a .gguf file"])


def validated(model: type[Settings], values: dict[str, Any], where: str) -> Settings:
    """`values` as a `model`, or a LabError of one line that names each wrong key and, for an unknown one, the legal keys."""
    try:
        made = model.model_validate(values)
    except (ValidationError, RecursionError) as error:
        faults = [_fault(model, fault) for fault in error.errors()] if isinstance(error, ValidationError) else ["nested too deep"]
        raise LabError(f"{where}: {'; '.join(faults)}") from None
    if name := _not_finite(made.model_dump()):
        raise LabError(f"{where}: {name}: expected a finite number")
    return made


def _fault(model: type[BaseModel], fault: Any) -> str:
    name = ".".join(map(str, fault["loc"])) or "value"
    if fault["type"] == "missing":
        return f"{name}: missing"
    if fault["type"] == "extra_forbidden":
        return f"{name}: unknown key; legal: {', '.join(_part(model, fault['loc'][:-1]).model_fields)}"
    words = fault["type"] == "string_type" and isinstance(fault["input"], bool)
    hint = " (a plain yes, no, on or off is read so; put it in quotes)" if words else ""
    return f"{name}: {fault['msg']}, got {shortened(repr(fault['input']))}{hint}"


def _not_finite(values: Any, name: str = "") -> str:
    """The name of the first setting that is not a number or infinite; empty where there is none."""
    if isinstance(values, float):
        return "" if math.isfinite(values) else name
    parts = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, (list, tuple)) else ()
    return next(filter(None, (_not_finite(part, f"{name}.{key}" if name else str(key)) for key, part in parts)), "")


def _part(model: type[BaseModel], keys: Sequence[int | str]) -> type[BaseModel]:
    """The form of what lies below these keys; the nearest one above where there is none of its own."""
    for key in keys:
        field = model.model_fields.get(str(key))
        kind = field.annotation if field else None
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            break
        model = kind
    return model


def read_mapping(path: Path) -> dict[str, Any]:
    """A YAML file that must hold keys and values."""
    values = read_yaml(path)
    if not isinstance(values, dict):
        raise LabError(f"{path}: expected keys and values, got {type(values).__name__}")
    return values


def _positions(path: Path) -> int:
    """How many positions the model of a config.json has; the default where the file does not say."""
    try:
        config = read_object(path)
        return int(config.get("max_position_embeddings") or config.get("n_positions") or DEFAULT_CONTEXT)  # n_positions: GPT-2's word
    except (LabError, OverflowError, TypeError, ValueError):
        raise LabError(f"{path} is no model configuration: expected a JSON object with a number of max_position_embeddings") from None

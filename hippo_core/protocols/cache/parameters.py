"""What the experiment `cache` can be told, and what of it is refused."""

import json
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from hippo_core import text_files
from hippo_core.errors import LabError, unknown
from hippo_core.models.kv_storage import Precision
from hippo_core.models.spec import load_spec
from hippo_core.protocols.base.experiment import Experiment, checked
from hippo_core.protocols.base.parameters import Parameters, Positive
from hippo_core.protocols.cache import defences
from hippo_core.protocols.cache.names import LOTO, UNSEEN, Bits, Format, Kind, Parts, Task, Times

TEXTS = {"sst2": ("sst2",), "wikitext2": ("wikitext2-valid", "wikitext2-train")}  # public files that a task reads, of params/data.yaml
DRY = 4  # probes of a dry run
Severity = Annotated[float, Field(ge=0, le=1)]


class CacheParameters(Parameters):
    """What `06_cache_robustness` can be told."""

    tasks: list[Task] = Field(default=["text", "choice", "needle", "traces"], min_length=1)
    n: Positive = 40
    kinds: list[Kind] = Field(default=["gaussian", "contiguous_overwrite"], min_length=1)
    severities: list[Severity] = Field(default=[0.25, 0.5, 1.0], min_length=1)
    defences: list[str] = Field(default=["reset", "clipping", "recompute"])
    layers: list[int] | None = None
    heads: list[int] | None = None
    times: Times = "all_past"
    recent: Annotated[int, Field(ge=0)] = 32
    window: list[int] = Field(default=[16, 48], min_length=2, max_length=2)
    parts: Parts = "KV"
    stored: Format = "bfloat16"
    bits: Bits = "all"
    budget: Annotated[float, Field(gt=0, le=1)] = 1.0
    precision: Precision = "bfloat16"
    rank: Positive = 64
    repaired: list[int] | None = None
    repaired_parts: Parts = "KV"
    holdout: Kind | Literal[""] = ""
    ood: str = ""
    contraction: Annotated[float, Field(ge=0)] = 0.5
    identity: Annotated[float, Field(ge=0)] = 1.0
    steps: Positive = 200
    step: Literal["train", "measure", "remove"] = "measure"

    @property
    def items(self) -> int:
        """How many probes a task has."""
        return min(self.n, DRY) if self.dry_run else self.n


def check(experiment: Experiment, values: dict[str, Any], where: str) -> Any:
    """The parameters, if every name and number in them is right for the model; LabError with what is legal otherwise."""
    parameters = checked(experiment, values, where)
    if parameters.ood:
        legal = [LOTO + kind for kind in get_args(Kind) if kind not in UNSEEN]
        if parameters.ood not in legal:
            raise unknown(f"{where}: ood", parameters.ood, legal)
        kind = parameters.ood.removeprefix(LOTO)
        implied = {"kinds": [kind], "holdout": kind}
        if wrong := [name for name, value in implied.items() if name in values and values[name] not in (value, usual_of(name))]:
            raise LabError(
                f"{where}: ood={parameters.ood} says {wrong[0]}={implied[wrong[0]]}, got {values[wrong[0]]}; leave {wrong[0]} out"
            )
        parameters = parameters.model_copy(update=implied)
    for name in ("tasks", "kinds", "severities", "defences"):
        given = getattr(parameters, name)
        if len(set(given)) < len(given):
            raise LabError(f"{where}: {name} names one of {given} twice")
    defences.find_defences(parameters.defences)
    text_files.require(*(file for task in parameters.tasks if parameters.step != "train" for file in TEXTS.get(task, ())))
    first, end = parameters.window
    if not 0 <= first < end:
        raise LabError(f"{where}: window: expected [first, behind the last) of tokens, got {parameters.window}")
    if parameters.stored.startswith("int") and (codes := [name for name in parameters.defences if name.startswith("ecc")]):
        message = f"{codes[0]} guards a cache of float32, float16 or bfloat16, got stored={parameters.stored}"
        raise LabError(f"{where}: {message}; leave {codes[0]} out")
    if parameters.stored.startswith("int") and parameters.bits in ("exponent", "mantissa"):
        raise LabError(f"{where}: {parameters.stored} codes have no {parameters.bits}; use bits=all or bits=sign, or a float format")
    _check_shape(parameters, where)
    return parameters


def usual_of(name: str) -> Any:
    """The default of a parameter."""
    return CacheParameters.model_fields[name].get_default()


def _check_shape(parameters: Any, where: str) -> None:
    """LabError for layers and heads that the model lacks, where its config can be read."""
    path = load_spec(parameters.model).path / "config.json"
    if not path.is_file():
        return
    config = json.loads(path.read_text(encoding="utf-8"))
    layers, heads = config.get("num_hidden_layers"), config.get("num_key_value_heads") or config.get("num_attention_heads")
    for name, count in (("layers", layers), ("repaired", layers), ("heads", heads)):
        if wrong := [index for index in getattr(parameters, name) or () if count and not 0 <= index < count]:
            raise LabError(f"{where}: {name}: {parameters.model} has {count}, numbered from 0 to {count - 1}; got {wrong}")

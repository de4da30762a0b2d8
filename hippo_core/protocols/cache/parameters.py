"""What the experiment `cache` can be told, and what of it is refused."""

import json
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from hippo_core import text_files
from hippo_core.errors import LabError, unknown
from hippo_core.models.kv_storage import Precision
from hippo_core.models.spec import load_spec
from hippo_core.protocols.base.experiment import Experiment, checked
from hippo_core.protocols.base.parameters import Parameters, Positive, Seed
from hippo_core.protocols.cache import defences
from hippo_core.protocols.cache.names import LOTO, UNSEEN, USUAL, Bits, Format, Kind, Parts, Task, Times

TEXTS = {"sst2": ("sst2",), "wikitext2": ("wikitext2-valid", "wikitext2-train")}  # public files that a task reads, of params/data.yaml
DRY = 4  # probes of a dry run
QUESTION = 64  # tokens behind a long context, at most: its question and answer
Severity = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(gt=0, le=1)]


class CacheParameters(Parameters):
    """What `06_cache_robustness` can be told."""

    tasks: list[Task] = Field(default=["text", "choice", "needle", "traces"], min_length=1)
    n: Positive = 40
    scored: Positive | None = USUAL.scored
    max_seq_len: Positive | None = USUAL.max_seq_len
    context_len: Positive = USUAL.context_len
    needle_token: str = USUAL.needle_token
    needle_value: str = USUAL.needle_value
    position_frac: Severity = USUAL.position_frac
    question_template: str = USUAL.question_template
    kinds: list[Kind] = Field(default=["gaussian", "contiguous_overwrite"], min_length=1)
    severities: list[Severity] = Field(default=[0.25, 0.5, 1.0], min_length=1)
    defences: list[str] = Field(default=["reset", "clipping", "recompute"])
    layers: list[int] | None = None
    heads: list[int] | None = None
    layer_share: Share = 1.0
    head_share: Share = 1.0
    mask_seed: Seed | None = None
    times: Times = "all_past"
    recent: Annotated[int, Field(ge=0)] = 32
    window: list[int] = Field(default=[16, 48], min_length=2, max_length=2)
    parts: Parts = "KV"
    stored: Format = "bfloat16"
    bits: Bits = "all"
    budget: Share = 1.0
    precision: Precision = "bfloat16"
    rank: Positive = 64
    repaired: list[int] | None = None
    repaired_parts: Parts = "KV"
    holdout: Kind | Literal[""] = ""
    ood: str = ""
    contraction: Annotated[float, Field(ge=0)] = 0.5
    alpha: Annotated[float, Field(ge=0)] = 0.75
    identity: Annotated[float, Field(ge=0)] = 1.0
    steps: Positive = 200
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 2e-2
    batch: Positive = 8
    trained_on: Positive = 64
    clean_share: Severity = 0.2
    mending: Severity = 0.6
    warmup: Positive = 20
    cooldown: Severity = 0.6
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
    _check_needle(parameters, where)
    _check_shape(parameters, where)
    return parameters


def usual_of(name: str) -> Any:
    """The default of a parameter."""
    return CacheParameters.model_fields[name].get_default()


def _check_needle(parameters: Any, where: str) -> None:
    """LabError for a template that a needle cannot fill, and for tokens that cannot be scored."""
    for name, field in (("question_template", "needle_token"), ("needle_value", "number")):
        text = getattr(parameters, name)
        try:
            filled = text.format(**{field: "7"})
        except (KeyError, IndexError, ValueError):
            raise LabError(f"{where}: {name}: expected text with no field but {{{field}}}, got {text!r}; write {{{{ for a brace") from None
        if not filled.strip() or (name == "question_template" and filled == text):
            raise LabError(f"{where}: {name}: expected text with {{{field}}} in it, got {text!r}")
    most = parameters.max_seq_len
    if most and (parameters.scored or 0) > most - 2:
        raise LabError(f"{where}: scored={parameters.scored} leaves no context in max_seq_len={most}; score at most {most - 2}")


def _check_shape(parameters: Any, where: str) -> None:
    """LabError for layers and heads that the model lacks, where its config can be read."""
    path = load_spec(parameters.model).path / "config.json"
    if not path.is_file():
        return
    config = json.loads(path.read_text(encoding="utf-8"))
    layers, heads = config.get("num_hidden_layers"), config.get("num_key_value_heads") or config.get("num_attention_heads")
    takes = min(config.get("max_position_embeddings") or 10**9, parameters.max_seq_len or 10**9)
    if parameters.max_seq_len and takes < parameters.max_seq_len:
        raise LabError(f"{where}: {parameters.model} takes {takes} tokens, got max_seq_len={parameters.max_seq_len}; take at most {takes}")
    if "long_context" in parameters.tasks and parameters.context_len > takes - QUESTION:
        least = f"context_len of at most {takes - QUESTION}: {takes} tokens, {QUESTION} of them for question and answer"
        raise LabError(f"{where}: expected for {parameters.model} a {least}; got {parameters.context_len}")
    for name, count in (("layers", layers), ("repaired", layers), ("heads", heads)):
        if wrong := [index for index in getattr(parameters, name) or () if count and not 0 <= index < count]:
            raise LabError(f"{where}: {name}: {parameters.model} has {count}, numbered from 0 to {count - 1}; got {wrong}")

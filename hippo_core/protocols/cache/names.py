"""The names of faults, defences and probes, without torch: what parameters are checked by."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "gaussian",
    "dropout_zero",
    "orthogonal_rotation",
    "bitflip",
    "bitflipish_sparse",
    "quant_noise",
    "contiguous_overwrite",
    "targeted",
    "stuck_features",
    "gain_drift",
    "tokens_swapped",
]
UNSEEN = ("stuck_features", "gain_drift", "tokens_swapped")  # written when all repairs were done: nothing learns from these
LOTO = "loto_holdout_"  # and a kind that is not in UNSEEN: it is left out of a training, and measured
Times = Literal["all_past", "old_only", "window"]
Parts = Literal["K", "V", "KV"]
Format = Literal["float32", "float16", "bfloat16", "int8", "int4"]
Field = Literal["all", "sign", "exponent", "mantissa"]
Bits = Literal["all", "sign", "exponent", "mantissa", "each"]  # each: a fault for every bit by itself
Task = Literal["text", "choice", "needle", "traces", "cloze", "sst2", "wikitext2", "long_context"]
TRACE_PROBES = "hippo_core.protocols.cache.trace_probes"  # the module of the task traces
RECALLING = "memory/hei_nw"  # the preset whose traces it reads


@dataclass(frozen=True)
class ContextSettings:
    """How long the contexts of probes are, and what a long one hides; notebook 06 says what each is."""

    scored: int | None = None
    max_seq_len: int | None = None
    context_len: int = 384
    needle_token: str = "the_key"
    needle_value: str = "violet-{number}"
    position_frac: float = 0.35
    question_template: str = "Question: What is {needle_token}? Answer:"


USUAL = ContextSettings()

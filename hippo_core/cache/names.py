"""The names of faults, defences and probes, without torch: what parameters are checked by."""

from typing import Literal

Kind = Literal[
    "gaussian", "dropout_zero", "orthogonal_rotation", "bitflip", "bitflipish_sparse", "quant_noise", "contiguous_overwrite", "targeted"
]
Times = Literal["all_past", "old_only", "window"]
Parts = Literal["K", "V", "KV"]
Format = Literal["float32", "float16", "bfloat16", "int8", "int4"]
Field = Literal["all", "sign", "exponent", "mantissa"]
Task = Literal["text", "choice", "needle", "traces"]
Family = Literal["A", "B", "C"]
DefenceName = Literal[
    "none",
    "reset",
    "masking",
    "smoothing",
    "clipping",
    "detect_clear",
    "rms_outlier",
    "median",
    "ecc",
    "learned",
    "wiener",
    "wiener_layer",
    "episodic",
    "episodic_random",
    "episodic_oldest",
    "episodic_gold",
    "recompute",
]

"""How each condition looks in every figure and table: one label, colour, marker, line and place in the order, for good.

The colours are told apart with every common colour blindness, and their lightness differs enough to be told apart in grey:
baselines are muted, controls hollow, memories in full colour (Okabe and Ito's set), those with a part off in warm and green tones.
Presets that are not listed get colours and markers that no listed one has; controls among them are hollow too, in colours of their own.
"""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hippo_core.files import LabError, root
from hippo_core.methods.base import Method
from hippo_core.methods.presets import load_preset

INK = "#1d2330"
QUIET = "#6b7280"
RULE = "#d9dde3"
INVALID = "INVALID"  # behind a condition whose cell may say nothing
CHANCE = "#8a5a00"
REGIMES = ("immediate", "delayed", "after_sleep")
SUITES = (
    *("episodic", "episodic_multi", "episodic_cross", "episodic_capacity", "semantic", "spatial", "mixed", "babi", "consolidation"),
    "relations",
)


@dataclass(frozen=True, slots=True)
class Look:
    """The look of one condition. `line` is a matplotlib dash pattern; a hollow marker is drawn as an outline."""

    label: str
    colour: str
    marker: str
    line: str = "-"
    hollow: bool = False


LOOKS = {
    "baselines/core": Look("core", "#a3a8b0", "o", ":"),
    "baselines/span_short": Look("span_short", "#3f4652", "s"),
    "baselines/longctx": Look("longctx", "#8d7f9b", "P", "--"),
    "baselines/rag_bm25": Look("rag_bm25", "#a8905f", "^", "--"),
    "baselines/rag_dense": Look("rag_dense", "#7f9bb3", "v", "-."),
    "baselines/rag_dense (minilm)": Look("rag_dense (minilm)", "#4c6f91", "<", "-."),
    "baselines/rag_hybrid": Look("rag_hybrid", "#5f7a6b", "D"),
    "baselines/rag_hybrid (minilm)": Look("rag_hybrid (minilm)", "#37564a", "p"),
    "baselines/rag_grams": Look("rag_grams", "#b58a8a", "h", "--"),
    "baselines/rag_synonyms": Look("rag_synonyms", "#c2b280", "*", "--"),
    "baselines/rag_rerank": Look("rag_rerank", "#7a5c74", "d", "-."),
    "baselines/rag_rerank (minilm)": Look("rag_rerank (minilm)", "#533a4f", ">", "-."),
    "baselines/rag_sum": Look("rag_sum", "#9c8b3f", "$S$", ":"),
    "baselines/rag_fitted": Look("rag_fitted", "#50666b", "$F$", "--"),
    "baselines/rag_fitted_rerank": Look("rag_fitted_rerank", "#2f4347", "$R$", "--"),
    "baselines/rag_head": Look("rag_head", "#86673f", "$H$", "-."),
    "baselines/rag_sum_head": Look("rag_sum_head", "#7b6d2c", "$U$", ":"),
    "baselines/rag_head_fitted": Look("rag_head_fitted", "#5c4526", "$W$", "-."),
    "baselines/rag_dense_latest": Look("rag_dense_latest", "#6f7d4e", "X", ":"),
    "baselines/rag_hybrid_latest": Look("rag_hybrid_latest", "#9a7b4f", "H", ":"),
    "baselines/rag_rerank_latest": Look("rag_rerank_latest", "#8a5a5a", "8", ":"),
    "helped/rag_paths": Look("rag_paths", "#b07a4a", "s", "--"),
    "helped/longctx_paths": Look("longctx_paths", "#8a5f45", "P", "--"),
    "helped/rag_planner": Look("rag_planner", "#5f9c86", "^", "--"),
    "helped/longctx_planner": Look("longctx_planner", "#40705f", "P", ":"),
    "helped/rag_all": Look("rag_all", "#9a7490", "D", "--"),
    "helped/longctx_all": Look("longctx_all", "#755670", "X", "--"),
    "memory/hei_nw": Look("hei_nw", "#0072b2", "o"),
    "memory/hei_nw_gated": Look("hei_nw_gated", "#3a8fc4", "p", "--"),
    "memory/hei_nw (minilm)": Look("hei_nw (minilm)", "#005a8f", "h"),
    "memory/hei_nw_text": Look("hei_nw_text", "#1a5e8a", "<", ":"),
    "memory/sgc_rss": Look("sgc_rss", "#d55e00", "s"),
    "memory/smpd": Look("smpd", "#009e73", "^"),
    "memory/all": Look("all memories", "#a6447f", "D"),
    "ablations/predictive": Look("predictive", "#b2485f", "v", "--"),
    "ablations/hopfield": Look("hopfield", "#e69f00", "^", "-."),
    "ablations/no_sparsity": Look("no_sparsity", "#6a8f2f", "X", ":"),
    "ablations/gate_random": Look("gate_random", "#cc6677", "D", ":"),
    "ablations/gate_unflagged": Look("gate_unflagged", "#117733", "s", "-."),
    "ablations/no_replay": Look("no_replay", "#aa7733", "P", "--"),
    "ablations/traces_off": Look("traces_off", "#5b5b6b", "<", ":"),
    "ablations/no_writes": Look("no_writes", "#88768a", ">", "--"),
    "controls/random_facts": Look("random_facts", "#7b828e", "X", ":", hollow=True),
    "controls/empty_store": Look("empty_store", "#6d8fb0", "s", ":", hollow=True),
    "controls/shuffled_store": Look("shuffled_store", "#557a9c", "v", ":", hollow=True),
    "controls/random_traces": Look("random_traces", "#86a3bf", "P", ":", hollow=True),
    "controls/altered_store": Look("altered_store", "#3f6b5c", "^", ":", hollow=True),
    "controls/oracle_store": Look("oracle_store", "#1b4f7a", "D", ":", hollow=True),
    "controls/oracle": Look("oracle", "#1d2330", "o", ":", hollow=True),
}
_UNLISTED = (("#8c4fb0", "#c2185b", "#00838f", "#b8860b", "#4e6b1e", "#7a3b1d", "#3949ab"), ("h", "d", "8", "p"))
_UNLISTED_CONTROLS = (("#7986cb", "#ba68c8", "#4db6ac", "#a1887f", "#e57399", "#9e9d24"), ("s", "v", "D", "P", "X", "^"))
_LISTED_CONTROLS = frozenset(name for name in LOOKS if name.startswith("controls/"))
_ORDER = {condition: position for position, condition in enumerate(LOOKS)}


def condition_name(preset: str, *marks: str) -> str:
    """The name of a condition: its preset, and in brackets what sets it apart: `baselines/rag_dense (minilm)`."""
    details = ", ".join(filter(None, marks))
    return f"{preset} ({details})" if details else preset


def base(condition: str) -> str:
    """The preset that a condition is a variant of: `baselines/rag_bm25 (k=5)` -> `baselines/rag_bm25`."""
    return condition.split(" (", 1)[0]


def look(condition: str) -> Look:
    """The look of a condition. A variant has its preset's look with its settings in the label; a preset that is not listed has one of the
    spare looks, and so has a listed one that is run as a control."""
    preset, named = base(condition), _named(condition)
    label = (LOOKS[preset].label if preset in LOOKS else preset.split("/")[-1]) + condition[len(preset) :]
    own_control = is_control(condition) and preset not in _LISTED_CONTROLS
    known = None if own_control else LOOKS.get(named)
    if known is not None:
        return known if condition == named else replace(known, label=label)
    colours, markers = _UNLISTED_CONTROLS if own_control else _UNLISTED
    number = zlib.crc32((condition if own_control else preset).encode())
    marker = markers[number // len(colours) % len(markers)]
    return Look(label, colours[number % len(colours)], marker, ":" if own_control else "-", own_control)


def _named(condition: str) -> str:
    """The entry of LOOKS that a condition, or a variant of it, has: that of its encoder, where there is one, before that of its preset."""
    preset = base(condition)
    marks = condition[len(preset) :].strip(" ()").split(", ")
    names = [condition, *(f"{preset} ({mark})" for mark in marks), preset]
    return next((name for name in names if name in LOOKS), preset)


def _sort_key(condition: str) -> tuple[int, int, list[float], str]:
    preset = base(condition)
    family = 2 if is_control(condition) else 0 if preset.startswith(("baselines/", "helped/")) else 1
    numbers = [float(number) for number in re.findall(r"\d+", condition)]  # k=3 before k=10
    return family, _ORDER.get(_named(condition), len(_ORDER)), numbers, condition


def ordered(conditions: Iterable[str]) -> list[str]:
    """The distinct conditions in the order that every figure and table has: baselines, memories, controls."""
    return sorted(set(conditions), key=_sort_key)


def is_control(condition: str) -> bool:
    """Whether a condition is a control: a preset of the folder `controls`, or one that says `control=...` in its brackets."""
    preset = base(condition)
    marks = condition[len(preset) :].strip(" ()").split(", ")
    return preset.startswith("controls/") or any(mark.startswith("control=") and mark != "control=none" for mark in marks)


def is_invalid(condition: str) -> bool:
    """Whether a condition is that of an invalid cell."""
    return INVALID in condition[len(base(condition)) :].strip(" ()").split(", ")


def unmarked(condition: str) -> str:
    """The condition without the mark of an invalid cell."""
    return condition.replace(f" ({INVALID})", "").replace(f", {INVALID}", "")


def is_bound(condition: str) -> bool:
    """Whether a condition is a control, or is told what no method may know: a bound to read others by, and never the best of them."""
    return is_control(condition) or base(condition) == "baselines/rag_synonyms"


def suite_position(suite: str) -> tuple[int, str]:
    """A sort key that puts suites in the order of every report: recall of episodes first, those of others last."""
    return (SUITES.index(suite) if suite in SUITES else len(SUITES)), suite


def ignores_window(condition: str) -> bool:
    """Whether a condition ignores the window, so that one run stands for the immediate and the delayed regime.

    The method of its preset says so (`Method.ignores_window`). A record may come from another machine: where its preset cannot be loaded
    here, the default of `Method` counts.
    """
    try:
        return _method_ignores_window(root(), base(condition))
    except (LabError, ImportError):
        return Method.ignores_window


@cache
def _method_ignores_window(lab: Path, preset: str) -> bool:
    """What the method of a preset says. `lab` is the root that presets are read from: each root has its own entries in the cache."""
    return load_preset(preset).method.ignores_window

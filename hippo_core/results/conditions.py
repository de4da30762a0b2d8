"""What a condition is: its name, whether it is a control or a bound, whether it ignores the window, and its place in every table."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from hippo_core.discovery import ORDER
from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.methods.base import Method
from hippo_core.methods.presets import load_preset, styles_of_presets
from hippo_core.suites import suite_constants

INVALID = "INVALID"  # behind a condition whose cell may say nothing
SWITCHED_OFF = frozenset({"memory.runtime.enable_writes=false", "replay.enabled=false", "traces=off", "traces=false"})
REGIMES = ("immediate", "delayed", "after_sleep")


def condition_name(preset: str, *marks: str) -> str:
    """The name of a condition: its preset, and in brackets what sets it apart: `baselines/rag_dense (minilm)`."""
    details = ", ".join(filter(None, marks))
    return f"{preset} ({details})" if details else preset


def base(condition: str) -> str:
    """The preset that a condition is a variant of: `baselines/rag_bm25 (k=5)` -> `baselines/rag_bm25`."""
    return condition.split(" (", 1)[0]


def marks_of(condition: str) -> list[str]:
    """What stands in the brackets of a condition."""
    return condition[len(base(condition)) :].strip(" ()").split(", ")


def before_sleep(condition: str, marks: str = "replay.") -> str:
    """The condition that a sleep begins with: the same without what its brackets say of the replay, or only without these `marks`."""
    return condition_name(base(condition), *(mark for mark in marks_of(condition) if not mark.startswith(marks)))


def replay_cycles(condition: str) -> int:
    """The cycles that the brackets of a condition ask for: one unless they say so, as in every preset."""
    return next((int(mark.partition("=")[2]) for mark in marks_of(condition) if mark.startswith("replay.cycles=")), 1)


def named(condition: str) -> str:
    """The condition that gives a variant its style and order: one of its marks, as its encoder, comes before its preset."""
    preset = base(condition)
    names = [condition, *(f"{preset} ({mark})" for mark in marks_of(condition)), preset]
    return next((name for name in names if name in styles_of_presets()), preset)


def _sort_key(condition: str) -> tuple[int, int, list[float], str]:
    preset, listed = base(condition), [*styles_of_presets()]
    family = 2 if is_control(condition) else 0 if preset.startswith(("baselines/", "helped/")) else 1
    numbers = [float(number) for number in re.findall(r"\d+", condition)]  # k=3 before k=10
    return family, listed.index(name) if (name := named(condition)) in listed else len(listed), numbers, condition


def ordered(conditions: Iterable[str]) -> list[str]:
    """The distinct conditions in the order that every figure and table has: baselines, memories, controls."""
    return sorted(set(conditions), key=_sort_key)


def is_control(condition: str) -> bool:
    """Whether a condition is a control: a preset of the folder `controls`, or one that says `control=...` in its brackets."""
    preset, marks = base(condition), marks_of(condition)
    return preset.startswith("controls/") or any(mark.startswith("control=") and mark != "control=none" for mark in marks)


def is_switched_off(condition: str) -> bool:
    """Whether a condition says in its brackets that its memory may not write, recall or sleep: an ablation, as those of the folder are."""
    return not SWITCHED_OFF.isdisjoint(mark.replace(" ", "").casefold() for mark in marks_of(condition))


def is_invalid(condition: str) -> bool:
    """Whether a condition is that of an invalid cell."""
    return INVALID in marks_of(condition)


def unmarked(condition: str) -> str:
    """The condition without the mark of an invalid cell."""
    return condition.replace(f" ({INVALID})", "").replace(f", {INVALID}", "")


def is_bound(condition: str) -> bool:
    """Whether a condition is a control, or is told what no method may know: a bound to read others by, and never the best of them."""
    return is_control(condition) or base(condition) == "baselines/rag_synonyms"


def suite_position(suite: str) -> tuple[int, str]:
    """A sort key that puts suites in the order of every report: recall of episodes first, those of others last."""
    return suite_constants(suite).get("order", ORDER), suite


def ignores_window(condition: str) -> bool:
    """Whether the method of a condition ignores the window, so that one run stands for the immediate and the delayed regime. Where its
    preset cannot be loaded here, as one of another machine, the default of `Method` counts."""
    try:
        return _method_ignores_window(root(), base(condition))
    except (LabError, ImportError):
        return Method.ignores_window


@cache
def _method_ignores_window(lab: Path, preset: str) -> bool:
    """What the method of a preset says; `lab`, the root that presets are read from, tells entries of the cache apart."""
    return load_preset(preset).method.ignores_window

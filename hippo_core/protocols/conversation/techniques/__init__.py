"""Techniques: what of a dialogue is shown for a question. A file each, which says what it does; one interface (`base`).

Those that rank by the question rank passages: NAME@3 and NAME@6 are of three and six turns in a row. NAME[key=value;...] replaces
settings: bm25@3[recency=0.3;top_k=4].
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hippo_core.discovery import Member, find_member, member
from hippo_core.errors import LabError
from hippo_core.models.spec import validated
from hippo_core.protocols.base.assignments import with_settings
from hippo_core.protocols.conversation.techniques.base import Technique, TechniqueContext

ONE_WORD = "hippo-tiny"  # the model that was taught to answer in a word
ALIASES = {
    "bm25_recent": "bm25[recency=0.25]",
    "embedding_recent": "embedding[recency=0.25]",
    "actr_base": "actr[weight=0]",
    "actr_noise": "actr[noise=0.25]",
    "window_summary": "summary[window=0.5]",
    "model_window_summary": "model_summary[window=0.5]",
}


def parsed(text: str) -> tuple[str, int, dict[str, Any]]:
    """A technique's name, its chunk of turns, and the settings that are replaced; LabError for an unknown one."""
    name, values = with_settings(text)
    name, at, size = name.partition("@")
    base, usual = with_settings(ALIASES.get(name, name))
    values = usual | values
    find_member(__name__, base, "technique")
    if not at:
        return base, 1, values
    if not size.isdecimal() or int(size) < 1 or not member(__name__, base, "technique").chunks:
        raise LabError(f"technique {text!r}: expected a retriever, @ and a number of turns from 1, as bm25@3")
    return base, int(size), values


def technique_members(names: Sequence[str]) -> list[Member]:
    """The techniques of these names; only one in brackets is loaded. LabError: it is unknown, named twice, or has no such setting."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise LabError(f"technique {twice[0]!r} is named twice")
    for name in (name for name in names if "[" in name):
        base, _, values = parsed(name)
        _settings(member(__name__, base, "technique"), name, values)
    return [find_member(__name__, parsed(name)[0], "technique") for name in names]


def require_writer(names: Sequence[str], model: str) -> None:
    """LabError where a technique lets a model write that only answers in a word."""
    for name, technique in zip(names, technique_members(names), strict=True):
        if technique.constants.get("writes") and model == ONE_WORD:
            raise LabError(f"technique {name}: {model} answers in a word and cannot write; give another model, as smollm2-135m-reader")


def load_technique(name: str, setting: TechniqueContext) -> Technique:
    """The technique of this name; LabError for an unknown one."""
    base, chunk, values = parsed(name)
    technique: Technique = member(__name__, base, "technique")(replace(setting, chunk=chunk))
    technique.settings = _settings(type(technique), name, values) if values else technique.settings
    return technique


def _settings(technique: type[Technique], name: str, values: dict[str, Any]) -> Any:
    return validated(type(technique.settings), {**technique.settings.model_dump(), **values}, f"technique {name}")

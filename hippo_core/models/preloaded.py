"""Models loaded before they are asked for: a process that others are forked from loads one once, and each fork finds it there.

A fork has the weights without a copy until it writes to them, and what it writes no other sees.
"""

import json
from pathlib import Path

from hippo_core.files import root
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.spec import ModelSpec

_held: dict[str, LanguageModel] = {}


def put(spec: ModelSpec, lm: LanguageModel) -> None:
    """Keep a loaded model for `take`."""
    _held[_stamp(spec)] = lm


def take(spec: ModelSpec) -> LanguageModel | None:
    """The model of a spec, once: who asks again gets one that nobody has changed. None where there is none, or its files are others now."""
    return _held.pop(_stamp(spec), None)


def _stamp(spec: ModelSpec) -> str:
    """The spec, and size and time of change of all files that a model is loaded from."""
    folders = [spec.path if spec.path.is_dir() else spec.path.parent, spec.adapter_path, root() / "params"]
    files = [path for folder in folders if folder and folder.is_dir() for path in sorted(folder.glob("*")) if path.is_file()]
    return json.dumps([spec.model_dump(mode="json"), [_look(path) for path in files]])


def _look(path: Path) -> tuple[str, int, int]:
    seen = path.stat()
    return str(path), seen.st_size, seen.st_mtime_ns

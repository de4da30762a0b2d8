"""Checksums of what a model is loaded from, and of what was fitted beside it. Each is computed once a process."""

import hashlib
import json
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from hippo_core.files import root, sha256
from hippo_core.models.spec import load_spec

# The files of a model's folder that loading it reads: a file beside them is read by who declares it, and changes nothing else.
LOADED = (
    *("config.json", "generation_config.json", "model*.safetensors", "*.safetensors.index.json", "pytorch_model*", "*.gguf"),
    *("tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt", "*.model", "chat_template*"),
    *("adapter_config.json", "adapter_model*"),
)
WEIGHTS = "data/weights"  # where the lab's own weights lie, a folder a model


def digest(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON: the order of keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def of_files(files: Iterable[Path], base: Path) -> str:
    """One checksum of many files: their paths below `base` and their bytes."""
    return digest({path.relative_to(base).as_posix(): sha256(path) for path in files})


@cache
def weights(model: str) -> str:
    """The files of a local model and of its adapter, or the name and revision of one on the Hugging Face hub."""
    spec = load_spec(model)
    parts = [_loaded(spec.path) if spec.is_local else f"{spec.source}@{spec.revision or 'main'}"]
    if spec.adapter_path:
        parts.append(_loaded(spec.adapter_path))
    return parts[0] if len(parts) == 1 else digest(parts)


def _loaded(path: Path) -> str:
    files = [path] if path.is_file() else sorted(file for file in path.glob("*") if file.is_file())
    return of_files([file for file in files if any(fnmatch(file.name, pattern) for pattern in LOADED)], path.parent)


@cache
def fitted(patterns: tuple[str, ...], model: str) -> str:
    """The files that a method declares: patterns of paths below data/weights, in which `{model}` is the model that answers."""
    folder = root() / WEIGHTS
    paths = {path for pattern in patterns for path in folder.glob(pattern.format(model=model)) if path.is_file()}
    return of_files(sorted(paths), folder)


@cache
def shots() -> str:
    """The worked examples that a model's spec may ask for."""
    return sha256(root() / "params" / "shots.yaml")


def forget() -> None:
    """Compute everything again at the next call."""
    for cached in (weights, fitted, shots):
        cached.cache_clear()

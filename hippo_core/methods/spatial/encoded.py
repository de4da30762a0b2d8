"""MiniLM's vectors of words and sentences, kept for the process, and what is fitted to them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from hippo_core.files import check_seal, read_sealed, seal, write_sealed

Encode = Callable[[Sequence[str]], np.ndarray]  # unit vectors of texts, [N, D]
_vectors: dict[str, np.ndarray] = {}


def minilm_kept(texts: Sequence[str]) -> np.ndarray:
    """The unit vectors of texts [N, D]; each is encoded once a process."""
    from hippo_core.models import minilm

    if new := [text for text in dict.fromkeys(texts) if text not in _vectors]:
        _vectors.update(zip(new, minilm.encode(new).numpy(), strict=True))
    return np.stack([_vectors[text] for text in texts])


def write_weights(weights: dict[str, np.ndarray], path: Path) -> None:
    """Write fitted weights, and their seal into the JSON beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(weights, path)
    write_sealed(path.with_suffix(".json"), {"tensors": seal(path)})


def read_weights(path: Path, command: str) -> dict[str, np.ndarray]:
    """Fitted weights as `write_weights` wrote them; LabError where they are not, which names the command that fits them."""
    again = f"`{command}` makes it"
    check_seal(path, read_sealed(path.with_suffix(".json"), again).get("tensors"), again)
    return load_file(path)

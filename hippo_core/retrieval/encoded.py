"""Cache an encoder's output for a list of texts on disk, as many cells of a grid read the same worlds.

Each list has one file below data/generated/encoded, named by encoder and texts. What a live memory is told is `private`.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from hippo_core.files import home, write_bytes

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = "data/generated/encoded"
LEAST = 100  # shorter lists are not worth a file
_private = ContextVar("private", default=False)


@contextmanager
def private() -> Iterator[None]:
    """Within the block nothing that is encoded is kept on disk, or read from there."""
    before = _private.set(True)
    try:
        yield
    finally:
        _private.reset(before)


def kept(encoder: str, texts: Sequence[str], encode: "Callable[[], Mapping[str, Tensor]]") -> "Mapping[str, Tensor]":
    """The named tensors that `encode` makes of the texts, read from disk if they are there. `encoder` names the encoder and its weights;
    empty: nothing is read from disk or written."""
    if not encoder or len(texts) < LEAST or _private.get():
        return encode()
    from safetensors import SafetensorError
    from safetensors.torch import load, save

    digest = hashlib.sha256(encoder.encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    path = home() / FOLDER / f"{digest.hexdigest()[:32]}.safetensors"
    try:
        return load(path.read_bytes())
    except (FileNotFoundError, SafetensorError):
        made = encode()
        write_bytes(path, save({name: tensor.contiguous() for name, tensor in made.items()}))
        return made
